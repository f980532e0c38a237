//! Encodes requests for an agent, with the system-call filter that it installs.

use std::time::Duration;

use rustix::process::Resource;
use sandbox_core::{BackendError, ByteSize, Limits, ProcessSpec, SandboxSpec, StagePlan};
use sandbox_linux::agent::{Inside, exec_frame, process_frame, serve_frame};
use sandbox_linux::landlock;
use sandbox_linux::rlimits::{self, Shared};
use sandbox_linux::seccomp::{Arch, DeniedAction, Profile, Program, Verdict};
use sandbox_protocol::DecodeError;
use sandbox_protocol::agent::SyscallDenyRules;

use crate::error::failed;
use crate::workspace::largest_file;

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
        let limits = &plan.sandbox.limits;
        let shared = Shared { memory: false, pids: None };
        let mut rlimits = self.rlimits(limits, largest_file(plan), shared);
        if !self.inside.counts_processes {
            // The program's first process also counts for the agent, its parent.
            rlimits.push((Resource::Nproc as u64, u64::from(limits.pids()) - 1));
        }
        encoded(exec_frame(plan, self.inside(&rlimits, self.inside.user)))
    }

    /// The frame that asks the agent to serve any number of processes of this user.
    pub(crate) fn write_serve(sandbox: &SandboxSpec, user: u32) -> Result<Vec<u8>, BackendError> {
        encoded(serve_frame(sandbox, user))
    }

    /// The frame that asks the agent to run one of these processes.
    pub(crate) fn write_process(
        &self,
        sandbox: &SandboxSpec,
        process: &ProcessSpec,
        cpu_time: Option<Duration>,
        user: u32,
    ) -> Result<Vec<u8>, BackendError> {
        let limits = sandbox.limits.clone();
        let limits = match cpu_time {
            Some(time) => limits.with_cpu_time(time),
            None => Ok(limits),
        };
        let limits = limits.map_err(|error| BackendError::Refused(error.to_string()))?;
        // The cgroup also has room for the agent's processes, which are another user's.
        let shared = Shared { memory: false, pids: Some(u64::from(limits.pids())) };
        let rlimits = self.rlimits(&limits, limits.disk(), shared);
        encoded(process_frame(sandbox, process, self.inside(&rlimits, Some(user))))
    }

    fn rlimits(&self, limits: &Limits, largest: ByteSize, shared: Shared) -> Vec<(u64, u64)> {
        let rlimits = rlimits::encode(limits, largest, shared, true);
        let mut rlimits: Vec<(u64, u64)> = rlimits::numbered(&rlimits);
        if !self.inside.counts_cpu_time {
            rlimits.retain(|(kind, _)| *kind != Resource::Cpu as u64);
        }
        rlimits
    }

    fn inside<'a>(&'a self, rlimits: &'a [(u64, u64)], user: Option<u32>) -> Inside<'a> {
        Inside {
            rlimits,
            filter: self.filter.as_bytes(),
            deny_rules: self.deny_rules.as_deref(),
            user,
            landlock: self.inside.landlock,
        }
    }
}

fn encoded(frame: Result<Vec<u8>, DecodeError>) -> Result<Vec<u8>, BackendError> {
    frame.map_err(|error| failed("encode the request for the agent", error))
}
