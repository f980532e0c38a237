//! Containers that a runtime of the OCI kind builds: runc.
//!
//! The runtime gets a bundle: a description of the walls, and a root made of the host's own toolchains, as the native
//! backend has it. In it our agent is process 1, and takes the order. The cgroup is made, limited and read by us; the
//! runtime puts the container into it.

mod bundle;
mod container;
mod ids;
mod runtime;
mod state;

use std::sync::Arc;
use std::time::Instant;

use sandbox_core::{
    Backend, BackendError, CancelToken, Capabilities, Isolation, MissingProtection, Observer,
    Protection, StageOutcome, StagePlan, Start,
};
use sandbox_linux::cgroup::{Hierarchy, sweep_everywhere};
use sandbox_linux::guest::{AGENT, order};
use sandbox_linux::rlimits::{self, Fallback};
use sandbox_linux::seccomp::{
    Affinity, Arch, ContainerFilter, DeniedAction, FilterOptions, NetworkKind, Profile, Program,
    Verdict,
};
use serde_json::Value;

use crate::failed;
use crate::guest::{Around, carry_out};
use container::OciContainer;
use ids::Ids;
use runtime::Runtime;
use state::State;

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
    profile: Profile,
    filter_options: FilterOptions,
    filter: Program,
    answers: Vec<u8>,
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
        Self::look_at_host().map(drop)
    }

    /// What containers need of the host, or what it lacks.
    fn look_at_host() -> Result<Hierarchy, BackendError> {
        let refused = |reason: &str| Err(BackendError::Refused(reason.to_owned()));
        if AGENT.is_empty() {
            return refused(
                "this build has no agent for containers: build it where there is a static C library \
                 (libc.a), for the machine it is built on, or use --isolation native",
            );
        }
        if !rustix::process::geteuid().is_root() || !sandbox_linux::ids::are_available() {
            return refused("runc needs root here: run as root, or use --isolation native");
        }
        let hierarchy = Hierarchy::detect();
        let enforces = hierarchy.enforces();
        if !(enforces.memory && enforces.pids && enforces.cpu_quota && enforces.cpu_accounting) {
            return refused("runc needs cgroups with memory, pids and cpu: use --isolation native");
        }
        Ok(hierarchy)
    }

    fn start(runtime: Runtime) -> Result<Self, BackendError> {
        let hierarchy = Self::look_at_host()?;
        let options = FilterOptions {
            denied: DeniedAction::Notify,
            affinity: Affinity::Free,
            network: NetworkKind::None,
        };
        let profile = Profile::builtin();
        let filter = profile
            .compile(Arch::NATIVE, &options)
            .map_err(|error| failed("compile the system-call filter", error))?;
        let state = State::open(&runtime)?;
        sweep_everywhere();
        hierarchy.sweep();
        let capabilities = Capabilities { enforceable: WALLS.to_vec(), missing: missing() };
        let ids = state.claim_ids().map_err(|error| failed("claim ids for containers", error))?;
        let answers = profile.answers(Arch::NATIVE);
        let seccomp = profile.oci_json(ContainerFilter::AroundAgent, Arch::NATIVE);
        let ids = Arc::new(ids);
        Ok(Self {
            runtime,
            hierarchy,
            capabilities,
            profile,
            filter_options: options,
            filter,
            answers,
            seccomp,
            state,
            ids,
        })
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

    fn name_of(&self, number: u32, arguments: [u64; 6]) -> String {
        let options = &self.filter_options;
        match self.profile.verdict(Arch::NATIVE, options, number, arguments) {
            Verdict::Deny { name, .. } => name.to_owned(),
            Verdict::Allow => format!("#{number}"),
        }
    }

    fn order(&self, plan: &StagePlan) -> Vec<u8> {
        let none = Fallback { memory: false, pids: false };
        let rlimits = rlimits::encode(&plan.limits, plan.limits.disk(), none, true);
        let rlimits: Vec<(u64, u64)> = rlimits::numbered(&rlimits);
        order(plan, &rlimits, self.filter.as_bytes(), &self.answers)
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
            name_of: &|number, arguments| self.name_of(number, arguments),
            begun,
        };
        carry_out(around, channel, plan, &self.order(plan), observer, cancel)
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
