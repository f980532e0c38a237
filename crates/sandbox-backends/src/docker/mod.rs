//! Containers of a Docker Engine that runs on this host.
//!
//! The Engine starts a container in which our agent is process 1 and waits for its order; we attach to it. Its root is an
//! image with nothing but places in it, onto which the host's own toolchains are mounted, as the native backend shows
//! them. The Engine's limits stand around a cgroup of ours, which is exact, and in which we count.

mod container;
mod description;
mod engine;
mod image;
mod state;
mod sweep;

use std::sync::Arc;
use std::time::Instant;

use sandbox_core::{
    Backend, BackendError, CancelToken, Capabilities, Isolation, MissingProtection, Observer,
    PoolFigures, Protection, StageOutcome, StagePlan,
};
use sandbox_linux::cgroup::{Hierarchy, sweep_everywhere};
use sandbox_linux::seccomp::{ContainerFilter, Profile};

use crate::failed;
use crate::guest::{
    Around, ContainerPool, InContainer, Orders, Purpose, Workshop, carry_out, look_at_host,
};
use container::DockerContainer;
use engine::Engine;
use image::BaseImage;
use state::State;

/// What stands around a program in a container of Docker.
const WALLS: &[Protection] = &[
    Protection::MountNamespace,
    Protection::PidNamespace,
    Protection::NetNamespace,
    Protection::IpcNamespace,
    Protection::UtsNamespace,
    Protection::CgroupNamespace,
    Protection::FreshRoot,
    Protection::PrivateProc,
    Protection::Session,
    Protection::Keyring,
    Protection::Capabilities,
    Protection::NoNewPrivs,
    Protection::Seccomp,
    Protection::Rlimits,
    Protection::ClosedDescriptors,
    Protection::Memory,
    Protection::Pids,
    Protection::Cpu,
    Protection::CpuTime,
    Protection::WallTime,
    Protection::Disk,
    Protection::Output,
    Protection::OpenFiles,
];

/// How the Docker backend is set up.
#[derive(Clone, Debug)]
pub struct DockerOptions {
    /// How many containers of a kind that is in demand are kept ready.
    pub spare: usize,
    /// Where it listens: `unix:///PATH`. Its usual place if nothing is said.
    pub host: Option<String>,
}

impl Default for DockerOptions {
    fn default() -> Self {
        Self { spare: 2, host: None }
    }
}

/// A backend that has its walls built by a Docker Engine.
pub struct DockerBackend {
    pool: ContainerPool<Arc<Docker>>,
    capabilities: Capabilities,
    orders: Orders,
}

/// What containers are made of.
struct Docker {
    engine: Engine,
    hierarchy: Hierarchy,
    image: BaseImage,
    state: State,
    filter: String,
}

impl Workshop for Arc<Docker> {
    type Container = DockerContainer;

    fn build(&self, purpose: &Purpose) -> Result<DockerContainer, BackendError> {
        DockerContainer::start(self, purpose)
    }

    fn is_waiting(&self, container: &mut DockerContainer) -> bool {
        container.is_waiting()
    }
}

impl DockerBackend {
    /// Whether an Engine can be used here, without starting anything.
    pub fn probe(options: &DockerOptions) -> Result<(), BackendError> {
        Self::look_at_host(options).map(drop)
    }

    /// What containers need of the host, or what it lacks. The reason is for people.
    fn look_at_host(options: &DockerOptions) -> Result<(Hierarchy, Engine), BackendError> {
        let hierarchy = look_at_host("docker")?;
        let engine = Engine::connect(options.host.as_deref().unwrap_or(engine::USUAL_HOST))?;
        Ok((hierarchy, engine))
    }

    /// Looks for the Engine, and clears what an earlier crash left.
    pub fn start(options: &DockerOptions) -> Result<Self, BackendError> {
        let (hierarchy, engine) = Self::look_at_host(options)?;
        sweep::sweep(&engine)?;
        // Now that nobody is in them.
        sweep_everywhere();
        hierarchy.sweep();
        let state = State::open()?;
        let image = BaseImage::import(&engine, &state.directory)?;
        let orders = Orders::new(InContainer::default())?;
        let capabilities = Capabilities { enforceable: WALLS.to_vec(), missing: missing() };
        let filter = Profile::builtin().docker_json(ContainerFilter::AroundAgent).to_string();
        let docker = Arc::new(Docker { engine, hierarchy, image, state, filter });
        let pool = ContainerPool::start(docker, options.spare)?;
        Ok(Self { pool, capabilities, orders })
    }
}

impl Backend for DockerBackend {
    fn isolation(&self) -> Isolation {
        Isolation::Docker
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn pool(&self) -> Option<PoolFigures> {
        Some(self.pool.figures())
    }

    fn run(
        &self,
        plan: &StagePlan,
        observer: &mut dyn Observer,
        cancel: &CancelToken,
    ) -> Result<StageOutcome, BackendError> {
        let begun = Instant::now();
        let mut lease = self.pool.claim(&Purpose::of(plan, Isolation::Docker)?)?;
        let start = lease.start;
        let container = lease.container();
        let channel = container.take_channel()?;
        let has_cpu_limit = plan.limits.cpu_time().is_some();
        let enforced = WALLS.iter().copied();
        let enforced = enforced.filter(|wall| *wall != Protection::CpuTime || has_cpu_limit);
        let around = Around {
            container,
            enforced: enforced.collect(),
            start,
            name_of: &|number, arguments| self.orders.name_of(number, arguments),
            begun,
        };
        carry_out(around, channel, plan, &self.orders.write(plan), observer, cancel)
    }
}

fn missing() -> Vec<MissingProtection> {
    let lacks = |protection, reason: &str| MissingProtection {
        protection,
        reason: reason.to_owned(),
        remedy: "use --isolation native".to_owned(),
    };
    vec![
        lacks(Protection::UserNamespace, "the Engine maps no ids of a container's own"),
        lacks(Protection::TimeNamespace, "the Engine makes no time namespaces"),
        lacks(Protection::Landlock, "the agent sets no rules of Landlock"),
    ]
}
