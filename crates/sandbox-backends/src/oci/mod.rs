//! Containers that a runtime of the OCI kind builds: runc, or gVisor's runsc.
//!
//! The runtime gets a bundle: a description of the walls, and a root made of the host's own toolchains, as the native
//! backend has it. In it our agent is process 1, and takes the order. The cgroup is made, limited and read by us; the
//! runtime puts the container into it.

mod bundle;
mod container;
mod ids;
mod kind;
mod runtime;
mod state;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use rustix::process::Resource;
use sandbox_core::{
    Backend, BackendError, CancelToken, Capabilities, Isolation, Observer, Protection,
    StageOutcome, StagePlan, Start,
};
use sandbox_linux::cgroup::{Hierarchy, sweep_everywhere};
use sandbox_linux::guest::{AGENT, Inside, order};
use sandbox_linux::rlimits::{self, Fallback};
use sandbox_linux::seccomp::{
    Affinity, Arch, DeniedAction, FilterOptions, NetworkKind, Profile, Program, Verdict,
};

use crate::failed;
use crate::guest::{Around, Channel, carry_out};
use container::{OciContainer, Parts};
use ids::Ids;
use kind::Kind;
use runtime::Runtime;
use state::State;

/// A backend that has its walls built by a container runtime.
pub struct OciBackend {
    runtime: Runtime,
    hierarchy: Hierarchy,
    capabilities: Capabilities,
    profile: Profile,
    filter_options: FilterOptions,
    filter: Program,
    answers: Vec<u8>,
    state: State,
    ids: Arc<Ids>,
    /// Which of the runtime's ways is the first that may work here.
    way: AtomicUsize,
}

impl OciBackend {
    /// Looks for runc, and clears what an earlier crash left. The reason why it cannot be used is for people.
    pub fn runc() -> Result<Self, BackendError> {
        Self::start(Kind::Runc)
    }

    /// The same with gVisor's runtime.
    pub fn gvisor() -> Result<Self, BackendError> {
        Self::start(Kind::Gvisor)
    }

    fn start(kind: Kind) -> Result<Self, BackendError> {
        let runtime = Runtime::find(kind)?;
        let name = kind.isolation();
        let refused = |reason: &str| Err(BackendError::Refused(reason.to_owned()));
        if AGENT.is_empty() {
            return refused(
                "this build has no agent for containers: build it where there is a static C library \
                 (libc.a), for the machine it is built on, or use --isolation native",
            );
        }
        if !rustix::process::geteuid().is_root() || !sandbox_linux::ids::are_available() {
            let reason = format!("{name} needs root here: run as root, or use --isolation native");
            return refused(&reason);
        }
        let hierarchy = Hierarchy::detect();
        let enforces = hierarchy.enforces();
        if !(enforces.memory && enforces.pids && enforces.cpu_quota && enforces.cpu_accounting) {
            let reason =
                format!("{name} needs cgroups with memory, pids and cpu: use --isolation native");
            return refused(&reason);
        }
        let options = FilterOptions {
            denied: kind.denied(),
            affinity: Affinity::Free,
            network: NetworkKind::None,
        };
        let profile = Profile::builtin();
        let filter = profile
            .compile(Arch::NATIVE, &options)
            .map_err(|error| failed("compile the system-call filter", error))?;
        let state = State::open(kind)?;
        sweep_everywhere();
        hierarchy.sweep();
        let capabilities = Capabilities { enforceable: kind.walls(), missing: kind.missing() };
        let ids = state.claim_ids().map_err(|error| failed("claim ids for containers", error))?;
        let answers = match options.denied {
            DeniedAction::Notify => profile.answers(Arch::NATIVE),
            // The filter has them.
            DeniedAction::Errno => Vec::new(),
        };
        let ids = Arc::new(ids);
        Ok(Self {
            runtime,
            hierarchy,
            capabilities,
            profile,
            filter_options: options,
            filter,
            answers,
            state,
            ids,
            way: AtomicUsize::new(0),
        })
    }

    fn check(&self, plan: &StagePlan) -> Result<(), BackendError> {
        let lacks = |what: &str| {
            let name = self.isolation();
            let reason = format!("containers of {name} have no {what} yet: use --isolation native");
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
        let kind = self.runtime.kind;
        let none = Fallback { memory: false, pids: false };
        let rlimits = rlimits::encode(&plan.limits, plan.limits.disk(), none, true);
        let mut rlimits: Vec<(u64, u64)> = rlimits::numbered(&rlimits);
        if !kind.counts_cpu_time() {
            rlimits.retain(|(kind, _)| *kind != Resource::Cpu as u64);
        }
        if kind.own_processes().is_none() {
            // The cgroup counts others too. The program's first process counts as the agent's, who made it.
            rlimits.push((Resource::Nproc as u64, u64::from(plan.limits.pids()) - 1));
        }
        let inside = Inside {
            rlimits: &rlimits,
            filter: self.filter.as_bytes(),
            answers: &self.answers,
            user: kind.agent_is_root().then_some(bundle::USER),
        };
        order(plan, inside)
    }
}

impl OciBackend {
    /// Starts a container, in the first of the runtime's ways that works here.
    fn start_container(
        &self,
        plan: &StagePlan,
    ) -> Result<(OciContainer<'_>, Channel), BackendError> {
        let ways = self.runtime.kind.ways();
        let known = self.way.load(Ordering::Relaxed);
        let mut first_error = None;
        for (number, way) in ways.iter().enumerate().skip(known) {
            let parts = Parts {
                runtime: &self.runtime,
                way,
                hierarchy: &self.hierarchy,
                state: &self.state,
                ids: &self.ids,
            };
            let started = OciContainer::start(parts, plan).and_then(|mut container| {
                container.wait_until_ready().map(|channel| (container, channel))
            });
            match started {
                Ok(started) => {
                    self.way.store(number, Ordering::Relaxed);
                    return Ok(started);
                }
                Err(error) => first_error = first_error.or(Some(error)),
            }
        }
        Err(first_error.unwrap_or_else(|| failed("start a container", "there is no way to")))
    }
}

impl Backend for OciBackend {
    fn isolation(&self) -> Isolation {
        self.runtime.kind.isolation()
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
        self.check(plan)?;
        let (container, channel) = self.start_container(plan)?;
        let has_cpu_limit = plan.limits.cpu_time().is_some();
        let enforced = self.capabilities.enforceable.iter().copied();
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
