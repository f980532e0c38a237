//! The Docker backend: containers of a Docker Engine on this host.
//!
//! The Engine starts a container in which the agent is process 1 and waits for a request; the
//! supervisor attaches to it. The image contains only mount points, on which the host's toolchains
//! or an image's directories are mounted, as in the native backend. The container runs in a cgroup
//! of this process, whose limits are exact; the Engine's own limits are looser.

mod container;
mod create_request;
mod engine;
mod image;
mod runtime;
mod state;
mod sweep;

use std::path::PathBuf;
use std::sync::Arc;

use sandbox_core::{Backend, BackendError, Coverage, Isolation, MissingProtection, Protection};
use sandbox_linux::cgroup::{Hierarchy, sweep_everywhere};
use sandbox_linux::seccomp::{ContainerFilter, Profile};

use crate::container::{
    ContainerFactory, ContainerPool, ContainerSpec, Containers, ExecEncoder, Kernel, Rootfs,
    capabilities, check_host, lacks, protections,
};
use crate::error::failed;
use crate::image::shown_by_root;
use container::DockerContainer;
use engine::Engine;
use image::BaseImage;
use runtime::Runtime;
use state::State;

/// Options of the Docker backend.
#[derive(Clone, Debug)]
pub struct DockerOptions {
    /// Containers to keep ready of each kind in demand.
    pub spare: usize,
    /// The Engine's address, `unix:///PATH`. Default: its usual socket.
    pub host: Option<String>,
    /// The directory of the unpacked image whose programs are used. Default: the host's programs.
    pub image: Option<PathBuf>,
    /// The Engine's runtime that starts containers, by its name there. Default: the Engine's
    /// default.
    pub runtime: Option<String>,
    /// Do not give containers inodes of their own. Only tests set this, to show what programs can
    /// observe through shared inodes.
    pub shares_inodes: bool,
}

impl Default for DockerOptions {
    fn default() -> Self {
        Self { spare: 2, host: None, image: None, runtime: None, shares_inodes: false }
    }
}

/// The backend that runs containers of a Docker Engine.
pub enum DockerBackend {}

/// What containers are created from.
struct Docker {
    engine: Engine,
    hierarchy: Hierarchy,
    image: BaseImage,
    state: State,
    filter: String,
    runtime: Runtime,
    /// Whether mounts of the host are covered in each container.
    has_own_inodes: bool,
}

impl ContainerFactory for Arc<Docker> {
    type Container = DockerContainer;

    fn build(&self, spec: &ContainerSpec) -> Result<DockerContainer, BackendError> {
        DockerContainer::start(self, spec)
    }

    fn is_waiting(&self, container: &mut DockerContainer) -> bool {
        container.is_waiting()
    }
}

impl DockerBackend {
    /// Whether an Engine is available, without starting anything.
    pub fn probe(options: &DockerOptions) -> Result<Coverage, BackendError> {
        let (_, _, Runtime { kernel, .. }) = Self::check_host(options)?;
        let lacks_here = kernel.lacks_here(&shown_by_root(options.image.as_deref())?);
        Ok(Coverage::new(&own_protections(kernel), &lacks_here, kernel.features()))
    }

    /// What containers of an Engine's default runtime enforce on a host that provides everything.
    pub fn by_design() -> Vec<Protection> {
        own_protections(Kernel::Host)
    }

    /// The cgroups for containers, or what the host lacks, as a message for people.
    fn check_host(options: &DockerOptions) -> Result<(Hierarchy, Engine, Runtime), BackendError> {
        let hierarchy = check_host("docker")?;
        let engine = Engine::connect(options.host.as_deref().unwrap_or(engine::USUAL_HOST))?;
        let runtime = Runtime::choose(&engine, options.runtime.as_deref())?;
        Ok((hierarchy, engine, runtime))
    }

    /// Connects to the Engine, and removes leftovers of an earlier crash.
    pub fn start(options: &DockerOptions) -> Result<impl Backend + use<>, BackendError> {
        let (hierarchy, engine, runtime) = Self::check_host(options)?;
        sweep::sweep(&engine)?;
        // After the sweep, so that the cgroups are empty.
        sweep_everywhere();
        hierarchy.sweep();
        let state = State::open()?;
        let root = Rootfs::of(options.image.as_deref())?;
        let image = BaseImage::import(&engine, &state.directory, &root)?;
        let kernel = runtime.kernel;
        let exec_encoder = ExecEncoder::new(kernel.inside())?;
        let lacks_here = kernel.lacks_here(root.skeleton.shown());
        let mut capabilities =
            capabilities(kernel, &own_protections(kernel), missing(kernel), &lacks_here);
        let has_own_inodes = kernel.covers_inodes(&mut capabilities, options.shares_inodes);
        let filter = Profile::builtin().docker_json(ContainerFilter::AroundAgent).to_string();
        let trees = root.trees;
        let docker = Docker { engine, hierarchy, image, state, filter, runtime, has_own_inodes };
        let docker = Arc::new(docker);
        let pool = ContainerPool::start(docker, options.spare)?;
        let isolation = Isolation::Docker;
        Ok(Containers { isolation, kernel, pool, capabilities, lacks_here, exec_encoder, trees })
    }
}

/// What its containers enforce by design.
fn own_protections(kernel: Kernel) -> Vec<Protection> {
    // Every program has a user of its own, for which the kernel counts watches.
    let mut all = protections(&[&[Protection::InotifyLimits], kernel.own_protections()].concat());
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
    fn every_protection_is_enforced_or_listed_as_missing() {
        for kernel in Kernel::ALL {
            let mut all = own_protections(*kernel);
            all.extend(missing(*kernel).iter().map(|missing| missing.protection));
            all.sort_unstable();
            assert_eq!(all, Protection::ALL, "{kernel:?}");
        }
    }
}
