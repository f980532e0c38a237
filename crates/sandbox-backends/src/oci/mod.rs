//! Containers that a runtime of the OCI kind builds: runc.
//!
//! The runtime gets a bundle: a description of the walls, and a root made of the host's own toolchains, as the native
//! backend has it. In it our agent is process 1, and takes the order. The cgroup is made, limited and read by us; the
//! runtime puts the container into it.

mod bundle;
mod container;
pub(crate) mod ids;
mod runtime;
mod state;

use std::sync::Arc;
use std::time::Instant;

use sandbox_core::{
    Backend, BackendError, CancelToken, Capabilities, Isolation, MissingProtection, Observer,
    Protection, StageOutcome, StagePlan, Start,
};
use sandbox_linux::cgroup::{Hierarchy, sweep_everywhere};
use sandbox_linux::seccomp::{Arch, ContainerFilter, DeniedAction, Profile};
use serde_json::Value;

use crate::failed;
use crate::guest::{Around, Orders, carry_out, look_at_host};
use container::OciContainer;
use ids::Ids;
use runtime::Runtime;
use state::State;

pub(crate) use state::claim_ids;

/// What stands around a program in a container of runc.
const WALLS: &[Protection] = &[
    Protection::UserNamespace,
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

/// A backend that has its walls built by a container runtime.
pub struct OciBackend {
    runtime: Runtime,
    hierarchy: Hierarchy,
    capabilities: Capabilities,
    orders: Orders,
    /// The runtime's own filter, around the agent and the program.
    seccomp: Value,
    state: State,
    ids: Arc<Ids>,
}

impl OciBackend {
    /// Looks for runc, and clears what an earlier crash left. The reason why it cannot be used is for people.
    pub fn runc() -> Result<Self, BackendError> {
        Self::start(Runtime::find_runc()?)
    }

    /// Whether runc can be used here, without starting anything.
    pub fn probe_runc() -> Result<(), BackendError> {
        Runtime::find_runc()?;
        look_at_host("runc").map(drop)
    }

    fn start(runtime: Runtime) -> Result<Self, BackendError> {
        let hierarchy = look_at_host("runc")?;
        let orders = Orders::new(DeniedAction::Notify)?;
        let state = State::open(&runtime)?;
        sweep_everywhere();
        hierarchy.sweep();
        let capabilities = Capabilities { enforceable: WALLS.to_vec(), missing: missing() };
        let ids =
            claim_ids(&state.name()).map_err(|error| failed("claim ids for containers", error))?;
        let seccomp = Profile::builtin().oci_json(ContainerFilter::AroundAgent, Arch::NATIVE);
        let ids = Arc::new(ids);
        Ok(Self { runtime, hierarchy, capabilities, orders, seccomp, state, ids })
    }

    fn check(plan: &StagePlan) -> Result<(), BackendError> {
        let lacks = |what: &str| {
            let reason = format!("containers of runc have no {what} yet: use --isolation native");
            Err(BackendError::Refused(reason))
        };
        if plan.workspace.is_some() {
            return lacks("workspaces");
        }
        if !plan.volumes.is_empty() {
            return lacks("volumes");
        }
        if plan.gate.is_some() {
            return lacks("way to fetch packages");
        }
        if plan.trees.iter().any(|tree| tree.copy_on_write) {
            return lacks("directories that are copied when they are written to");
        }
        Ok(())
    }
}

impl Backend for OciBackend {
    fn isolation(&self) -> Isolation {
        Isolation::Runc
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn run(
        &self,
        plan: &StagePlan,
        observer: &mut dyn Observer,
        cancel: &CancelToken,
    ) -> Result<StageOutcome, BackendError> {
        let begun = Instant::now();
        Self::check(plan)?;
        let mut container = OciContainer::start(
            &self.runtime,
            &self.hierarchy,
            &self.state,
            &self.ids,
            &self.seccomp,
            plan,
        )?;
        let channel = container.wait_until_ready()?;
        let has_cpu_limit = plan.limits.cpu_time().is_some();
        let enforced = WALLS.iter().copied();
        let enforced = enforced.filter(|wall| *wall != Protection::CpuTime || has_cpu_limit);
        let around = Around {
            container: &container,
            enforced: enforced.collect(),
            start: Start::Cold,
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
        lacks(Protection::TimeNamespace, "this runc makes no time namespaces"),
        lacks(Protection::Landlock, "the agent sets no rules of Landlock"),
    ]
}
