//! Containers that a runtime of the OCI kind builds: runc, crun, or gVisor's runsc.
//!
//! The runtime gets a bundle: a description of the walls, and a root made of the host's own toolchains, as the native
//! backend has it. In it our agent is process 1, and takes the order. The cgroup is made, limited and read by us; the
//! runtime puts the container into it.

mod bundle;
mod choice;
mod container;
pub(crate) mod ids;
mod kind;
mod runtime;
mod state;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use sandbox_core::{
    Backend, BackendError, CancelToken, Capabilities, Coverage, Isolation, MissingProtection,
    Observer, PoolFigures, Protection, StageOutcome, StagePlan,
};
use sandbox_linux::cgroup::{Hierarchy, sweep_everywhere};
use sandbox_linux::seccomp::{Arch, ContainerFilter, Profile};
use serde_json::Value;

use crate::guest::{
    ContainerPool, Containers, Orders, Purpose, Root, Workshop, capabilities, look_at_host,
};
use crate::{failed, shown_by_root};
use container::OciContainer;
use ids::Ids;
use kind::Kind;
use runtime::Runtime;
use state::State;

pub use choice::{OciOptions, OciRuntime};
pub(crate) use state::claim_ids;

/// A backend that has its walls built by a container runtime.
pub struct OciBackend {
    containers: Containers<Arc<Oci>>,
}

/// What containers are made with.
struct Oci {
    runtime: Runtime,
    hierarchy: Hierarchy,
    state: State,
    ids: Arc<Ids>,
    /// The runtime's own filter, around the agent and the program.
    seccomp: Value,
    /// Whether what is shown of the host is covered in each.
    has_own_inodes: bool,
    /// Which of the runtime's ways is the first that may work here.
    way: AtomicUsize,
}

impl OciBackend {
    /// Looks for a runtime of namespaces, and clears what an earlier crash left. The reason why it cannot be used is for
    /// people.
    pub fn runc(options: &OciOptions) -> Result<Self, BackendError> {
        Self::start(Isolation::Runc, options)
    }

    /// The same with gVisor's runtime, whichever other is asked for.
    pub fn gvisor(options: &OciOptions) -> Result<Self, BackendError> {
        let options = OciOptions { runtime: None, ..options.clone() };
        Self::start(Isolation::Gvisor, &options)
    }

    /// Whether a runtime of namespaces can be used here, without starting anything.
    pub fn probe_runc(options: &OciOptions) -> Result<Coverage, BackendError> {
        let (runtime, _) = Self::probe(Isolation::Runc, options)?;
        Ok(runtime.kind.coverage(&shown_by_root(options.image.as_deref())?))
    }

    /// The same with gVisor's runtime.
    pub fn probe_gvisor() -> Result<Coverage, BackendError> {
        let probed = Self::probe(Isolation::Gvisor, &OciOptions::default());
        probed.map(|(runtime, _)| runtime.kind.coverage(&[]))
    }

    /// What containers of this isolation enforce on a host that has everything.
    pub fn by_design(isolation: Isolation) -> Vec<Protection> {
        Kind::of(isolation)[0].walls()
    }

    fn probe(
        isolation: Isolation,
        options: &OciOptions,
    ) -> Result<(Runtime, Hierarchy), BackendError> {
        let runtime = Runtime::choose(isolation, options.runtime.as_ref())?;
        Ok((runtime, look_at_host(isolation.name())?))
    }

    fn start(isolation: Isolation, options: &OciOptions) -> Result<Self, BackendError> {
        let (runtime, hierarchy) = Self::probe(isolation, options)?;
        let kind = runtime.kind;
        let orders = Orders::new(kind.kernel().inside())?;
        let root = Root::of(options.image.as_deref())?;
        let trees = root.trees.clone();
        let lacks_here = kind.kernel().lacks_here(root.skeleton.shown());
        let state = State::open(&runtime, root)?;
        sweep_everywhere();
        hierarchy.sweep();
        let kernel = kind.kernel();
        let mut capabilities = capabilities(&kind.walls(), kind.missing(), &lacks_here);
        let has_own_inodes = kernel.covers_inodes(&mut capabilities, options.shares_inodes);
        let ids = claim_ids(&state.name());
        let ids = Arc::new(ids.map_err(|error| failed("claim ids for containers", error))?);
        let seccomp = Profile::builtin().oci_json(ContainerFilter::AroundAgent, Arch::NATIVE);
        let way = AtomicUsize::new(0);
        let oci = Arc::new(Oci { runtime, hierarchy, state, ids, seccomp, has_own_inodes, way });
        let pool = ContainerPool::start(oci, options.spare)?;
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

impl Workshop for Arc<Oci> {
    type Container = OciContainer;

    /// In the first of the runtime's ways that works here.
    fn build(&self, purpose: &Purpose) -> Result<OciContainer, BackendError> {
        let ways = self.runtime.kind.ways();
        let known = self.way.load(Ordering::Relaxed);
        let mut first_error = None;
        for (number, way) in ways.iter().enumerate().skip(known) {
            match OciContainer::start(self, way, purpose) {
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

impl Backend for OciBackend {
    fn isolation(&self) -> Isolation {
        self.containers.isolation
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
