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

use sandbox_core::{
    Backend, BackendError, CancelToken, Capabilities, Isolation, MissingProtection, Observer,
    PoolFigures, Protection, StageOutcome, StagePlan,
};
use sandbox_linux::cgroup::{Hierarchy, sweep_everywhere};
use sandbox_linux::seccomp::{ContainerFilter, Profile};

use crate::failed;
use crate::guest::{
    ContainerPool, Containers, InContainer, Orders, Purpose, Workshop, look_at_host, walls,
};
use container::DockerContainer;
use engine::Engine;
use image::BaseImage;
use state::State;

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
    containers: Containers<Arc<Docker>>,
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
        let capabilities = Capabilities { enforceable: walls(&[]), missing: missing() };
        let filter = Profile::builtin().docker_json(ContainerFilter::AroundAgent).to_string();
        let docker = Arc::new(Docker { engine, hierarchy, image, state, filter });
        let pool = ContainerPool::start(docker, options.spare)?;
        let isolation = Isolation::Docker;
        Ok(Self { containers: Containers { isolation, pool, capabilities, orders } })
    }
}

impl Backend for DockerBackend {
    fn isolation(&self) -> Isolation {
        Isolation::Docker
    }

    fn capabilities(&self) -> &Capabilities {
        &self.containers.capabilities
    }

    fn pool(&self) -> Option<PoolFigures> {
        Some(self.containers.pool.figures())
    }

    fn run(
        &self,
        plan: &StagePlan,
        observer: &mut dyn Observer,
        cancel: &CancelToken,
    ) -> Result<StageOutcome, BackendError> {
        self.containers.run(plan, observer, cancel)
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
