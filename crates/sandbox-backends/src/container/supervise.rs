//! Runs a stage through the agent of a container: what the supervisor loop does with it, and the
//! outcome.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::Instant;

use sandbox_core::{
    BackendError, CancelToken, Ending, InputFile, NetworkPolicy, Observer, ProcessLimits,
    Protection, StageOutcome, StagePlan, StageUsage, Start, WorkspaceOutcome,
};
use sandbox_linux::cgroup::{Cgroup, Usage};
use sandbox_linux::container_inodes::SharedInodes;

use super::agent_events::AgentEvents;
use super::channel::Channel;
use super::collect::collect;
use super::exec_request::ExecEncoder;
use crate::error::failed;
use crate::supervise::{
    Cause, Counters, Ended, LockLimit, NetworkMemory, Supervised, Supervision, Terms,
    UNACCEPTED_BYTES_BY_DEFAULT, supervise, without_program,
};

/// The signals that ask a program to end, and that kill it.
const SIGTERM: u8 = 15;
const SIGKILL: u8 = 9;

/// A container in which an agent waits for a request.
pub(crate) trait Container {
    /// The cgroup that limits and counts it.
    fn cgroup(&self) -> &dyn Cgroup;

    /// Returns the connection to the agent; once.
    fn take_channel(&mut self) -> Result<Channel, BackendError>;

    /// Kills everything in it.
    fn kill(&self) {
        // The owner of the cgroup may always read it.
        let _ = self.cgroup().kill();
    }

    /// The agent's process, if it can be identified.
    fn agent(&self) -> Option<u32>;

    /// The program's user and group on the host.
    fn program_id(&self) -> u32;

    /// The same inside.
    fn program_id_inside(&self) -> u32;

    /// Inodes that it shares with the host.
    fn shared_inodes(&self) -> &SharedInodes;

    /// Number of the runtime's processes that are counted with the program's; `None` if unknown.
    fn own_processes(&self) -> Option<u64>;

    /// Memory that was in use before the program started.
    fn own_memory(&self) -> u64 {
        0
    }
}

/// Whether any process in it is alive. A runtime may report the end late.
pub(crate) fn is_populated(container: &dyn Container) -> bool {
    container.cgroup().processes().is_ok_and(|processes| !processes.is_empty())
}

/// The container, and what the report says about it.
pub(crate) struct StageContext<'a> {
    pub(crate) container: &'a dyn Container,
    /// Protections in force.
    pub(crate) enforced: Vec<Protection>,
    pub(crate) start: Start,
    pub(crate) exec_encoder: &'a ExecEncoder,
    /// When the stage was requested.
    pub(crate) begun: Instant,
}

/// A stage that runs through an agent.
struct AgentProgram<'a> {
    context: StageContext<'a>,
    channel: Channel,
    plan: &'a StagePlan,
    before: Usage,
    events: AgentEvents<'a>,
}

/// Runs a stage through the agent and returns its outcome.
pub(crate) fn run_stage<'a>(
    context: StageContext<'a>,
    channel: Channel,
    plan: &'a StagePlan,
    exec: &[u8],
    observer: &mut dyn Observer,
    cancel: &CancelToken,
) -> Result<StageOutcome, BackendError> {
    let cgroup = context.container.cgroup();
    let counted = cgroup.reset_peak().and_then(|()| cgroup.usage());
    let before = counted.map_err(|error| failed("read what the container used", error))?;
    let oom = cgroup.oom_watch().map_err(|error| failed("watch the memory", error))?;
    let sent = channel.send_frame(exec).and_then(|()| channel.feed(&plan.process.stdin));
    sent.map_err(|error| failed("send the request to the agent", error))?;
    let limits = &plan.sandbox.limits;
    let terms = Terms {
        limits: ProcessLimits {
            wall_time: Some(limits.wall_time()),
            cpu_time: limits.cpu_time(),
            output_bytes: limits.output().as_usize(),
        },
        cpus: limits.cpus(),
        usage_interval: plan.usage_interval,
        started: None,
        oom,
    };
    let program = plan.process.command.first().map_or("", String::as_str);
    let events = AgentEvents::new(context.exec_encoder, program, None);
    let mut program = AgentProgram { context, channel, plan, before, events };
    let ended = supervise(&mut program, terms, observer, cancel)?;
    program.conclude(ended)
}

/// The outcome of a stage whose workspace did not fit in memory.
pub(crate) fn without_memory(context: StageContext<'_>) -> Result<StageOutcome, BackendError> {
    let used = context.container.cgroup().usage();
    let used = used.map_err(|error| failed("read what the container used", error))?;
    let memory_peak_kb = used.memory_peak.unwrap_or(used.memory_current) / 1024;
    Ok(StageOutcome {
        usage: StageUsage { memory_peak_kb, ..StageUsage::default() },
        workspace: Some(WorkspaceOutcome { written: None, refusal: None, left_out: Vec::new() }),
        enforced: context.enforced,
        start: context.start,
        prepare_time: context.begun.elapsed(),
        ..without_program(Ending::OutOfMemory)
    })
}

impl Supervised for AgentProgram<'_> {
    /// The channel to the agent.
    type Source = ();

    const START: &'static str = "have the agent start the program";

    fn sources(&self) -> impl Iterator<Item = ((), BorrowedFd<'_>)> {
        std::iter::once(((), self.channel.fd()))
    }

    fn handle(&mut self, (): (), supervision: &mut Supervision<'_>) -> Result<(), BackendError> {
        self.events.recv(&mut self.channel, supervision)
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.events.next_deadline()
    }

    fn on_time(
        &mut self,
        _: Instant,
        supervision: &mut Supervision<'_>,
    ) -> Result<(), BackendError> {
        self.events.resume(&mut self.channel, supervision)
    }

    fn terminate(&mut self) {
        self.channel.signal(SIGTERM);
    }

    fn kill_program(&mut self) {
        // The agent then ends everything else, and can still send files.
        self.channel.signal(SIGKILL);
    }

    fn kill_sandbox(&mut self, _: Cause) {
        self.context.container.kill();
    }

    fn is_gone(&self) -> bool {
        // The runtime does not report that the container ended.
        false
    }

    fn counters(&self) -> Counters<'_> {
        let container = self.context.container;
        Counters {
            cgroup: container.cgroup(),
            before: &self.before,
            own_processes: container.own_processes(),
            own_memory: container.own_memory(),
            agent: container.agent(),
            init: None,
        }
    }

    fn network_memory(&self, now: Instant) -> Option<NetworkMemory> {
        if self.plan.sandbox.network == NetworkPolicy::None {
            return None;
        }
        let cgroup = self.context.container.cgroup();
        let limit = self.plan.sandbox.limits.memory().as_u64();
        let process = cgroup.processes().unwrap_or_default().first().copied();
        Some(NetworkMemory::new(now, cgroup, process, UNACCEPTED_BYTES_BY_DEFAULT, limit))
    }

    /// Locks in gVisor are memory of its kernel, which the memory limit covers.
    fn limit_locks(&self) -> io::Result<Option<LockLimit>> {
        let memory = self.plan.sandbox.limits.memory().as_u64();
        let agent = self.context.container.agent();
        match agent.map(|agent| LockLimit::start(agent, memory)).transpose() {
            Err(_) if self.plan.sandbox.allow_missing.contains(&Protection::Memory) => Ok(None),
            started => started,
        }
    }
}

impl AgentProgram<'_> {
    fn conclude(mut self, ended: Ended) -> Result<StageOutcome, BackendError> {
        let cgroup = self.context.container.cgroup();
        let after =
            cgroup.usage().map_err(|error| failed("read what the container used", error))?;
        let oom_kills = cgroup.oom_kills();
        let oom_kills =
            oom_kills.map_err(|error| failed("read the OOM counter of the container", error))?;
        let mut usage = ended.usage(&self.counters(), &after);
        // gVisor's kernel may have used more, which is not the program's.
        let limit = self.plan.sandbox.limits.memory().as_u64();
        usage.memory_peak_kb = usage.memory_peak_kb.min(limit / 1024);
        let ending = ended
            .ending(oom_kills, &usage)
            .ok_or_else(|| failed("watch the container", "it ended without an exit status"))?;
        let ending = match ending {
            Ending::Signaled(_) if self.has_used_all_memory(&usage) => Ending::OutOfMemory,
            ending => ending,
        };
        let placed: Vec<&InputFile> = self.plan.sandbox.all_files().collect();
        let found = if ended.exit.is_some() {
            collect(&mut self.channel, &self.plan.collect, &placed)
                .map_err(|error| failed("collect the program's files", error))?
        } else {
            // Its files are gone with it.
            sandbox_linux::collect::Collected::default()
        };
        Ok(StageOutcome {
            enforced: self.context.enforced,
            start: self.context.start,
            prepare_time: ended.started - self.context.begun,
            ..ended.into_outcome(ending, usage, found)
        })
    }

    /// Whether the program reached its memory limit without being killed there: gVisor has memory
    /// beyond the limit, in which a runtime may notice that it has no more, and abort.
    fn has_used_all_memory(&self, usage: &StageUsage) -> bool {
        self.context.container.own_memory() > 0
            && usage.memory_peak_kb >= self.plan.sandbox.limits.memory().as_u64() / 1024
    }
}
