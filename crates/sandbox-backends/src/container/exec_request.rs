//! Encodes requests for an agent, with the system-call filter that it installs.

use rustix::process::Resource;
use sandbox_core::{BackendError, StagePlan};
use sandbox_linux::agent::{Inside, exec_frame};
use sandbox_linux::landlock;
use sandbox_linux::rlimits::{self, Shared};
use sandbox_linux::seccomp::{Arch, DeniedAction, Profile, Program, Verdict};
use sandbox_protocol::agent::SyscallDenyRules;

use crate::error::failed;
use crate::native::workspace::largest_file;

/// What an agent finds in a container of one kind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AgentEnvironment {
    /// What answers a call that the filter denies.
    pub(crate) denied: DeniedAction,
    /// Whether the kernel inside enforces CPU time rlimits correctly.
    pub(crate) counts_cpu_time: bool,
    /// Whether the cgroup's process count is that of the program, apart from a known number.
    pub(crate) counts_processes: bool,
    /// The program's user, if it differs from the agent's.
    pub(crate) user: Option<u32>,
    /// Landlock ABI version of the kernel inside; 0 for none.
    pub(crate) landlock: u32,
}

impl Default for AgentEnvironment {
    /// For containers on this host's kernel.
    fn default() -> Self {
        let denied = DeniedAction::Notify;
        let landlock = landlock::version();
        Self { denied, counts_cpu_time: true, counts_processes: true, user: None, landlock }
    }
}

/// Encodes exec requests for one kind of containers.
pub(crate) struct ExecEncoder {
    inside: AgentEnvironment,
    profile: Profile,
    filter: Program,
    deny_rules: Option<Vec<SyscallDenyRules>>,
}

impl ExecEncoder {
    pub(crate) fn new(inside: AgentEnvironment) -> Result<Self, BackendError> {
        let denied = inside.denied;
        let profile = Profile::builtin();
        let filter = profile
            .compile(Arch::NATIVE, denied)
            .map_err(|error| failed("compile the system-call filter", error))?;
        let deny_rules = match denied {
            DeniedAction::Notify => Some(profile.deny_rules(Arch::NATIVE)),
            // The filter itself returns the error numbers.
            DeniedAction::Errno => None,
        };
        Ok(Self { inside, profile, filter, deny_rules })
    }

    /// The name of a denied call.
    pub(crate) fn name_of(&self, number: u32, arguments: [u64; 6]) -> String {
        match self.profile.verdict(Arch::NATIVE, number, arguments) {
            Verdict::Deny { name, .. } => name.to_owned(),
            Verdict::Allow => format!("#{number}"),
        }
    }

    /// The frame that asks the agent to run a stage.
    pub(crate) fn write(&self, plan: &StagePlan) -> Result<Vec<u8>, BackendError> {
        let none = Shared { memory: false, pids: None };
        let rlimits = rlimits::encode(&plan.limits, largest_file(plan), none, true);
        let mut rlimits: Vec<(u64, u64)> = rlimits::numbered(&rlimits);
        if !self.inside.counts_cpu_time {
            rlimits.retain(|(kind, _)| *kind != Resource::Cpu as u64);
        }
        if !self.inside.counts_processes {
            // The program's first process also counts for the agent, its parent.
            rlimits.push((Resource::Nproc as u64, u64::from(plan.limits.pids()) - 1));
        }
        let inside = Inside {
            rlimits: &rlimits,
            filter: self.filter.as_bytes(),
            deny_rules: self.deny_rules.as_deref(),
            user: self.inside.user,
            landlock: self.inside.landlock,
        };
        exec_frame(plan, inside).map_err(|error| failed("encode the request for the agent", error))
    }
}
