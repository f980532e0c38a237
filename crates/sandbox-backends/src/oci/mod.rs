//! The OCI backend: containers of runc, crun, or gVisor's runsc.
//!
//! The runtime gets a bundle: a configuration, and a root of the host's own toolchains, as in the
//! native backend. The agent is process 1 in it and receives the request. This process creates the
//! cgroup, sets its limits and reads its counters; the runtime puts the container into it.

mod bundle;
mod choice;
mod container;
pub(crate) mod ids;
mod kind;
mod runtime;
mod state;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use sandbox_core::{Backend, BackendError, Coverage, Isolation, Protection};
use sandbox_linux::cgroup::{Hierarchy, sweep_everywhere};
use sandbox_linux::seccomp::{Arch, ContainerFilter, Profile};
use serde_json::Value;

use crate::container::{
    ContainerFactory, ContainerPool, ContainerSpec, Containers, ExecEncoder, Rootfs, capabilities,
    check_host,
};
use crate::error::failed;
use crate::image::shown_by_root;
use container::OciContainer;
use ids::Ids;
use kind::Kind;
use runtime::Runtime;
use state::State;

pub use choice::{OciOptions, OciRuntime};
pub(crate) use state::claim_ids;

/// The backend that runs containers of an OCI runtime.
pub enum OciBackend {}

/// What bundles are created from.
struct Oci {
    runtime: Runtime,
    hierarchy: Hierarchy,
    state: State,
    ids: Arc<Ids>,
    /// The container's filter, which applies to the agent and the program.
    seccomp: Value,
    /// Whether mounts of the host are covered in each container.
    has_own_inodes: bool,
    /// The first platform of the runtime that may work here.
    way: AtomicUsize,
}

impl OciBackend {
    /// Finds runc or crun, and removes leftovers of an earlier crash. The error is a message for
    /// people.
    pub fn runc(options: &OciOptions) -> Result<impl Backend + use<>, BackendError> {
        Self::start(Isolation::Runc, options)
    }

    /// The same with gVisor's runtime, whatever the options request.
    pub fn gvisor(options: &OciOptions) -> Result<impl Backend + use<>, BackendError> {
        let options = OciOptions { runtime: None, ..options.clone() };
        Self::start(Isolation::Gvisor, &options)
    }

    /// Whether runc or crun is available, without starting anything.
    pub fn probe_runc(options: &OciOptions) -> Result<Coverage, BackendError> {
        let (runtime, _) = Self::probe(Isolation::Runc, options)?;
        Ok(runtime.kind.coverage(&shown_by_root(options.image.as_deref())?))
    }

    /// The same for gVisor's runtime.
    pub fn probe_gvisor() -> Result<Coverage, BackendError> {
        let probed = Self::probe(Isolation::Gvisor, &OciOptions::default());
        probed.map(|(runtime, _)| runtime.kind.coverage(&[]))
    }

    /// What containers of this isolation enforce on a host that provides everything.
    pub fn by_design(isolation: Isolation) -> Vec<Protection> {
        Kind::of(isolation)[0].protections()
    }

    fn probe(
        isolation: Isolation,
        options: &OciOptions,
    ) -> Result<(Runtime, Hierarchy), BackendError> {
        let runtime = Runtime::choose(isolation, options.runtime.as_ref())?;
        Ok((runtime, check_host(isolation.name())?))
    }

    fn start(
        isolation: Isolation,
        options: &OciOptions,
    ) -> Result<Containers<Arc<Oci>>, BackendError> {
        let (runtime, hierarchy) = Self::probe(isolation, options)?;
        let kind = runtime.kind;
        let exec_encoder = ExecEncoder::new(kind.kernel().inside())?;
        let root = Rootfs::of(options.image.as_deref())?;
        let trees = root.trees.clone();
        let lacks_here = kind.kernel().lacks_here(root.skeleton.shown());
        let state = State::open(&runtime, root)?;
        sweep_everywhere();
        hierarchy.sweep();
        let kernel = kind.kernel();
        let mut capabilities =
            capabilities(kernel, &kind.protections(), kind.missing(), &lacks_here);
        let has_own_inodes = kernel.covers_inodes(&mut capabilities, options.shares_inodes);
        let ids = claim_ids(&state.name());
        let ids = Arc::new(ids.map_err(|error| failed("claim ids for containers", error))?);
        let seccomp = Profile::builtin().oci_json(ContainerFilter::AroundAgent, Arch::NATIVE);
        let way = AtomicUsize::new(0);
        let oci = Arc::new(Oci { runtime, hierarchy, state, ids, seccomp, has_own_inodes, way });
        let pool = ContainerPool::start(oci, options.spare)?;
        Ok(Containers { isolation, kernel, pool, capabilities, lacks_here, exec_encoder, trees })
    }
}

impl ContainerFactory for Arc<Oci> {
    type Container = OciContainer;

    /// On the first platform that works here.
    fn build(&self, spec: &ContainerSpec) -> Result<OciContainer, BackendError> {
        let ways = self.runtime.kind.ways();
        let known = self.way.load(Ordering::Relaxed);
        let mut first_error = None;
        for (number, way) in ways.iter().enumerate().skip(known) {
            match OciContainer::start(self, way, spec) {
                Ok(container) => {
                    self.way.store(number, Ordering::Relaxed);
                    return Ok(container);
                }
                Err(error) => first_error = first_error.or(Some(error)),
            }
        }
        Err(first_error.unwrap_or_else(|| failed("start a container", "there is no way to")))
    }

    fn is_waiting(&self, container: &mut OciContainer) -> bool {
        container.is_waiting()
    }
}
