//! Containers that a runtime of the OCI kind builds: runc, or gVisor's runsc.
//!
//! The runtime gets a bundle: a description of the walls, and a root made of the host's own toolchains, as the native
//! backend has it. In it our agent is process 1, and takes the order. The cgroup is made, limited and read by us; the
//! runtime puts the container into it.

mod bundle;
mod container;
pub(crate) mod ids;
mod kind;
mod runtime;
mod state;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use sandbox_core::{
    Backend, BackendError, CancelToken, Capabilities, Isolation, Observer, PoolFigures,
    StageOutcome, StagePlan,
};
use sandbox_linux::cgroup::{Hierarchy, sweep_everywhere};
use sandbox_linux::seccomp::{Arch, ContainerFilter, Profile};
use serde_json::Value;

use crate::failed;
use crate::guest::{ContainerPool, Containers, Orders, Purpose, Workshop, look_at_host};
use container::OciContainer;
use ids::Ids;
use kind::Kind;
use runtime::Runtime;
use state::State;

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
    /// Which of the runtime's ways is the first that may work here.
    way: AtomicUsize,
}

impl OciBackend {
    /// Looks for runc, and clears what an earlier crash left. Keeps so many containers ready of each kind that is in
    /// demand. The reason why it cannot be used is for people.
    pub fn runc(spare: usize) -> Result<Self, BackendError> {
        Self::start(Kind::Runc, spare)
    }

    /// The same with gVisor's runtime.
    pub fn gvisor(spare: usize) -> Result<Self, BackendError> {
        Self::start(Kind::Gvisor, spare)
    }

    /// Whether runc can be used here, without starting anything.
    pub fn probe_runc() -> Result<(), BackendError> {
        Self::probe(Kind::Runc).map(drop)
    }

    /// The same with gVisor's runtime.
    pub fn probe_gvisor() -> Result<(), BackendError> {
        Self::probe(Kind::Gvisor).map(drop)
    }

    fn probe(kind: Kind) -> Result<(Runtime, Hierarchy), BackendError> {
        let runtime = Runtime::find(kind)?;
        Ok((runtime, look_at_host(kind.isolation().name())?))
    }

    fn start(kind: Kind, spare: usize) -> Result<Self, BackendError> {
        let (runtime, hierarchy) = Self::probe(kind)?;
        let orders = Orders::new(kind.inside())?;
        let state = State::open(kind)?;
        sweep_everywhere();
        hierarchy.sweep();
        let capabilities = Capabilities { enforceable: kind.walls(), missing: kind.missing() };
        let ids = claim_ids(&state.name());
        let ids = Arc::new(ids.map_err(|error| failed("claim ids for containers", error))?);
        let seccomp = Profile::builtin().oci_json(ContainerFilter::AroundAgent, Arch::NATIVE);
        let way = AtomicUsize::new(0);
        let oci = Arc::new(Oci { runtime, hierarchy, state, ids, seccomp, way });
        let pool = ContainerPool::start(oci, spare)?;
        let isolation = kind.isolation();
        Ok(Self { containers: Containers { isolation, pool, capabilities, orders } })
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
