//! Containers of a Docker Engine that runs on this host.
//!
//! The Engine starts a container in which our agent is process 1 and waits for its order; we attach to it. Its root is an
//! image with nothing but places in it, onto which the host's own toolchains are mounted, or an image's directories, as
//! the native backend shows them. The Engine's limits stand around a cgroup of ours, which is exact, and in which we count.

mod container;
mod description;
mod engine;
mod image;
mod runtime;
mod state;
mod sweep;

use std::path::PathBuf;
use std::sync::Arc;

use sandbox_core::{
    Backend, BackendError, CancelToken, Capabilities, Coverage, Isolation, MissingProtection,
    Observer, PoolFigures, Protection, StageOutcome, StagePlan,
};
use sandbox_linux::cgroup::{Hierarchy, sweep_everywhere};
use sandbox_linux::seccomp::{ContainerFilter, Profile};

use crate::guest::{
    ContainerPool, Containers, Kernel, Orders, Purpose, Root, Workshop, capabilities, lacks,
    look_at_host, walls,
};
use crate::{failed, shown_by_root};
use container::DockerContainer;
use engine::Engine;
use image::BaseImage;
use runtime::Runtime;
use state::State;

/// How the Docker backend is set up.
#[derive(Clone, Debug)]
pub struct DockerOptions {
    /// How many containers of a kind that is in demand are kept ready.
    pub spare: usize,
    /// Where it listens: `unix:///PATH`. Its usual place if nothing is said.
    pub host: Option<String>,
    /// Where the image was unpacked whose programs are used; the host's own if nothing is said.
    pub image: Option<PathBuf>,
    /// Which of its runtimes builds containers, by the name that it has there. The one that it prefers if nothing is said.
    pub runtime: Option<String>,
    /// Leave the host's inodes as they are in what is shown. Only tests have a reason to: they show what programs notice by them.
    pub shares_inodes: bool,
}

impl Default for DockerOptions {
    fn default() -> Self {
        Self { spare: 2, host: None, image: None, runtime: None, shares_inodes: false }
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
    runtime: Runtime,
    /// Whether what is shown of the host is covered in each.
    has_own_inodes: bool,
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
    pub fn probe(options: &DockerOptions) -> Result<Coverage, BackendError> {
        let (_, _, runtime) = Self::look_at_host(options)?;
        let shown = shown_by_root(options.image.as_deref())?;
        Ok(Coverage::new(&own_walls(runtime.kernel), &runtime.kernel.lacks_here(&shown)))
    }

    /// What containers of an Engine's usual runtime enforce on a host that has everything.
    pub fn by_design() -> Vec<Protection> {
        own_walls(Kernel::Host)
    }

    /// What containers need of the host, or what it lacks. The reason is for people.
    fn look_at_host(options: &DockerOptions) -> Result<(Hierarchy, Engine, Runtime), BackendError> {
        let hierarchy = look_at_host("docker")?;
        let engine = Engine::connect(options.host.as_deref().unwrap_or(engine::USUAL_HOST))?;
        let runtime = Runtime::choose(&engine, options.runtime.as_deref())?;
        Ok((hierarchy, engine, runtime))
    }

    /// Looks for the Engine, and clears what an earlier crash left.
    pub fn start(options: &DockerOptions) -> Result<Self, BackendError> {
        let (hierarchy, engine, runtime) = Self::look_at_host(options)?;
        sweep::sweep(&engine)?;
        // Now that nobody is in them.
        sweep_everywhere();
        hierarchy.sweep();
        let state = State::open()?;
        let root = Root::of(options.image.as_deref())?;
        let image = BaseImage::import(&engine, &state.directory, &root)?;
        let kernel = runtime.kernel;
        let orders = Orders::new(kernel.inside())?;
        let lacks_here = kernel.lacks_here(root.skeleton.shown());
        let mut capabilities = capabilities(&own_walls(kernel), missing(kernel), &lacks_here);
        let has_own_inodes = kernel.covers_inodes(&mut capabilities, options.shares_inodes);
        let filter = Profile::builtin().docker_json(ContainerFilter::AroundAgent).to_string();
        let trees = root.trees;
        let docker = Docker { engine, hierarchy, image, state, filter, runtime, has_own_inodes };
        let docker = Arc::new(docker);
        let pool = ContainerPool::start(docker, options.spare)?;
        let isolation = Isolation::Docker;
        Ok(Self {
            containers: Containers {
                isolation,
                kernel,
                pool,
                capabilities,
                lacks_here,
                orders,
                trees,
            },
        })
    }
}

impl Backend for DockerBackend {
    fn isolation(&self) -> Isolation {
        Isolation::Docker
    }

    fn capabilities(&self) -> &Capabilities {
        &self.containers.capabilities
    }

    fn lacks_here(&self) -> &[MissingProtection] {
        &self.containers.lacks_here
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

/// What its containers enforce by design.
fn own_walls(kernel: Kernel) -> Vec<Protection> {
    // Every program has a user of its own, for whom the kernel counts its watches.
    let mut all = walls(&[&[Protection::InotifyLimits], kernel.own_walls()].concat());
    all.dedup();
    all
}

fn missing(kernel: Kernel) -> Vec<MissingProtection> {
    let mut missing =
        vec![lacks(Protection::UserNamespace, "the Engine maps no ids of a container's own")];
    missing.extend(kernel.missing("the Engine"));
    missing
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_protection_is_there_or_said_to_be_missing() {
        for kernel in Kernel::ALL {
            let mut all = own_walls(*kernel);
            all.extend(missing(*kernel).iter().map(|missing| missing.protection));
            all.sort_unstable();
            assert_eq!(all, Protection::ALL, "{kernel:?}");
        }
    }
}
