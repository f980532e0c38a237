//! The supervisor loop of a program in a container: output, limits, and the end.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;
use sandbox_core::{
    BackendError, CancelToken, Ending, InputFile, NetworkPolicy, Observer, Protection,
    StageOutcome, StagePlan, StageUsage, Start, StreamKind, TimeKind, UsageSample, Violation,
    WorkspaceOutcome,
};
use sandbox_linux::agent;
use sandbox_linux::cgroup::{Cgroup, OomWatch, Usage};
use sandbox_linux::container_inodes::SharedInodes;
use sandbox_protocol::Message as _;
use sandbox_protocol::agent::AgentEvent;
use sandbox_protocol::notice::ExitNotice;

use super::channel::{Channel, Received};
use super::collect::collect;
use crate::error::failed;
use crate::lock_limit::{LockLimit, SAMPLE_INTERVAL};
use crate::native::network_memory::{NetworkMemory, UNACCEPTED_BYTES_BY_DEFAULT};
use crate::native::output::CapturedOutput;
use crate::native::supervise::{
    BUILD_TIMEOUT, Cause, INIT_GRACE, MIN_CPU_CHECK_INTERVAL, TERM_GRACE,
};
use crate::native::usage::bytes_moved_by;
use crate::native::verdict::{ending, wall_time};

/// Maximum time for a killed agent to exit.
const KILL_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum number of messages that are handled between two checks of the deadlines.
const MAX_MESSAGES: usize = 64;
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
    fn kill(&self);

    /// The agent's process, if it can be identified.
    fn agent(&self) -> Option<u32>;

    /// The program's user and group on the host.
    fn program_id(&self) -> u32;

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
    /// Returns the name of a denied call.
    pub(crate) name_of: &'a dyn Fn(u32, [u64; 6]) -> String,
    /// When the stage was requested.
    pub(crate) begun: Instant,
}

/// What is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// The program, by the agent, which then ends everything else and can still send files.
    Program,
    /// Everything, including the agent.
    Container,
    /// Nothing more: the runtime does not report that the container ended.
    GiveUp,
}

struct Watch<'a> {
    context: StageContext<'a>,
    channel: Channel,
    plan: &'a StagePlan,
    observer: &'a mut dyn Observer,
    cancelled: OwnedFd,
    oom: Option<OomWatch>,
    before: Usage,
    kept: CapturedOutput,
    violations: BTreeMap<String, u64>,
    started: Option<Instant>,
    exit: Option<ExitNotice>,
    cause: Option<Cause>,
    /// The next step of ending it, and when to take it.
    escalation: Option<(Instant, Step)>,
    next_cpu_check: Option<Instant>,
    network_memory: Option<NetworkMemory>,
    next_sample: Option<Instant>,
    lock_limit: Option<LockLimit>,
    /// When to start counting locks.
    lock_limit_start: Option<Instant>,
    /// The last reported bytes read and written.
    moved: (u64, u64),
    failure: Option<String>,
    /// Whether there may be unhandled messages in the buffer.
    is_behind: bool,
    is_over: bool,
}

/// Runs a stage through the agent and returns its outcome.
pub(crate) fn run_stage(
    context: StageContext<'_>,
    channel: Channel,
    plan: &StagePlan,
    exec: &[u8],
    observer: &mut dyn Observer,
    cancel: &CancelToken,
) -> Result<StageOutcome, BackendError> {
    let cancelled = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
        .map_err(|error| failed("make the eventfd for cancellation", error))?;
    let waker = cancelled
        .try_clone()
        .map_err(|error| failed("make the eventfd for cancellation", error))?;
    let _registration = cancel.on_cancel(move || {
        // The counter cannot overflow: it is written once.
        let _ = rustix::io::write(&waker, &1_u64.to_ne_bytes());
    });
    let cgroup = context.container.cgroup();
    let counted = cgroup.reset_peak().and_then(|()| cgroup.usage());
    let before = counted.map_err(|error| failed("read what the container used", error))?;
    let oom = cgroup.oom_watch().map_err(|error| failed("watch the memory", error))?;
    let sent = channel.send_frame(exec).and_then(|()| channel.feed(&plan.stdin));
    sent.map_err(|error| failed("send the request to the agent", error))?;
    let mut watch = Watch {
        channel,
        plan,
        observer,
        cancelled,
        oom,
        before,
        kept: CapturedOutput::new(plan.limits.output().as_usize()),
        violations: BTreeMap::new(),
        started: None,
        exit: None,
        cause: None,
        escalation: None,
        next_cpu_check: None,
        network_memory: None,
        next_sample: None,
        lock_limit: None,
        lock_limit_start: None,
        moved: (0, 0),
        failure: None,
        is_behind: false,
        is_over: false,
        context,
    };
    while !watch.is_over {
        watch.turn()?;
    }
    watch.conclude()
}

/// The outcome of a stage whose workspace did not fit in memory.
pub(crate) fn without_memory(context: StageContext<'_>) -> Result<StageOutcome, BackendError> {
    let used = context.container.cgroup().usage();
    let used = used.map_err(|error| failed("read what the container used", error))?;
    let memory_peak_kb = used.memory_peak.unwrap_or(used.memory_current) / 1024;
    let nothing = WorkspaceOutcome { written: None, refusal: None, left_out: Vec::new() };
    Ok(StageOutcome {
        ending: Ending::OutOfMemory,
        usage: StageUsage { memory_peak_kb, ..StageUsage::default() },
        stdout: Vec::new(),
        stderr: Vec::new(),
        output: Vec::new(),
        stdout_truncated: false,
        stderr_truncated: false,
        files: Vec::new(),
        skipped: Vec::new(),
        workspace: Some(nothing),
        enforced: context.enforced,
        violations: Vec::new(),
        network: None,
        proxy_refusals: Vec::new(),
        start: context.start,
        prepare_time: context.begun.elapsed(),
        collect_time: Duration::ZERO,
    })
}

impl Watch<'_> {
    fn turn(&mut self) -> Result<(), BackendError> {
        let now = Instant::now();
        let left = self.next_deadline().saturating_duration_since(now);
        // Do not wait while there are buffered messages.
        let left = if self.is_behind { Duration::ZERO } else { left };
        let left =
            Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: left.subsec_nanos().into() };
        let mut fds = vec![PollFd::from_borrowed_fd(self.channel.fd(), PollFlags::IN)];
        if self.cause.is_none() {
            fds.push(PollFd::new(&self.cancelled, PollFlags::IN));
            if let Some(oom) = &self.oom {
                fds.push(PollFd::from_borrowed_fd(oom.fd(), oom.events()));
            }
        }
        let locks = fds.len();
        if let Some(limit) = &self.lock_limit
            && self.cause.is_none()
        {
            fds.push(PollFd::from_borrowed_fd(limit.alarm(), PollFlags::IN));
        }
        match poll(&mut fds, Some(&left)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(failed("wait for the agent", error)),
        }
        let is_ready = |place: usize| fds.get(place).is_some_and(|fd| !fd.revents().is_empty());
        let (is_cancelled, is_memory) = (is_ready(1), self.oom.is_some() && is_ready(2));
        let has_too_many_locks = is_ready(locks);
        if is_cancelled {
            self.cause = Some(Cause::Cancelled);
            self.escalation = Some((Instant::now() + TERM_GRACE, Step::Program));
            self.channel.signal(SIGTERM);
        }
        if is_memory && self.oom.as_mut().is_some_and(OomWatch::triggered) {
            self.end(Cause::Memory);
        }
        if has_too_many_locks && self.cause.is_none() {
            // Not through the agent, which shares the program's CPU limit and might be delayed by
            // it.
            self.cause = Some(Cause::Memory);
            self.escalate(Step::Container);
        }
        self.recv()?;
        self.look_at_clocks();
        Ok(())
    }

    fn recv(&mut self) -> Result<(), BackendError> {
        // Bounded: a program may write as fast as its output is read, and deadlines must be
        // checked.
        self.is_behind = false;
        for _ in 0..MAX_MESSAGES {
            match self.channel.recv() {
                Ok(Received::Nothing) => return Ok(()),
                Ok(Received::End) => {
                    self.is_over = true;
                    return Ok(());
                }
                Ok(Received::Message(message)) => self.handle_event(&message)?,
                Err(error) => return Err(failed("receive from the agent", error)),
            }
            if self.is_over {
                return Ok(());
            }
        }
        self.is_behind = true;
        Ok(())
    }

    fn handle_event(&mut self, message: &[u8]) -> Result<(), BackendError> {
        let event = AgentEvent::decode(message);
        match event.map_err(|error| failed("decode the agent's message", error))? {
            AgentEvent::Started => {
                let now = Instant::now();
                self.started = Some(now);
                let limit = self.plan.limits.cpu_time();
                self.next_cpu_check = limit.map(|limit| now + self.soonest(limit));
                self.network_memory = self.network_memory(now);
                self.next_sample = self.plan.usage_interval.map(|interval| now + interval);
                self.lock_limit_start = Some(now + SAMPLE_INTERVAL);
            }
            AgentEvent::Stdout(bytes) => self.take(StreamKind::Stdout, bytes),
            AgentEvent::Stderr(bytes) => self.take(StreamKind::Stderr, bytes),
            AgentEvent::SyscallDenied { syscall, arguments } => {
                let name = (self.context.name_of)(syscall, arguments);
                *self.violations.entry(name).or_default() += 1;
            }
            AgentEvent::Exited(exit) => {
                self.exit = Some(agent::exit_notice(exit));
                self.is_over = true;
            }
            AgentEvent::Failed(failure) => {
                let cause = io::Error::from_raw_os_error(failure.errno);
                self.failure = Some(format!("{}: {cause}", failure.step));
                self.is_over = true;
            }
            _ => return Err(failed("receive from the agent", "unexpected message")),
        }
        Ok(())
    }

    fn take(&mut self, stream: StreamKind, bytes: &[u8]) {
        let taken = self.kept.take(stream, bytes);
        if taken > 0 {
            self.observer.output(stream, &bytes[..taken]);
        }
        if self.kept.is_over() {
            self.end(Cause::Output);
        }
    }

    fn next_deadline(&self) -> Instant {
        let wall = match self.started {
            Some(started) => started + self.plan.limits.wall_time(),
            None => self.context.begun + BUILD_TIMEOUT,
        };
        let clocks = match (self.cause, self.escalation) {
            (Some(_), Some((at, _))) => [Some(at), None, None, None],
            (Some(_), None) => [None, None, None, None],
            (None, _) => {
                let network = self.network_memory.as_ref().map(NetworkMemory::next);
                [Some(wall), self.next_cpu_check, network, self.lock_limit_start]
            }
        };
        let alarms = clocks.into_iter().chain([self.next_sample]).flatten();
        alarms.min().unwrap_or_else(|| Instant::now() + KILL_TIMEOUT)
    }

    fn look_at_clocks(&mut self) {
        let now = Instant::now();
        if let Some((at, step)) = self.escalation
            && at <= now
        {
            self.escalate(step);
        }
        if let (Some(at), Some(interval)) = (self.next_sample, self.plan.usage_interval)
            && at <= now
        {
            self.next_sample = Some(now + interval);
            self.sample();
        }
        if self.cause.is_some() {
            return;
        }
        if let Some(memory) = &mut self.network_memory
            && memory.next() <= now
            && memory.is_over(now, self.context.container.cgroup())
        {
            self.end(Cause::Memory);
            return;
        }
        match self.started {
            Some(started) if now >= started + self.plan.limits.wall_time() => {
                self.end(Cause::Time(TimeKind::Wall));
            }
            None if now >= self.context.begun + BUILD_TIMEOUT => {
                self.failure = Some("the program did not start in time".to_owned());
                self.end(Cause::Cancelled);
            }
            _ => {}
        }
        if self.lock_limit_start.is_some_and(|at| at <= now) {
            self.lock_limit_start = None;
            self.limit_locks();
        }
        if let (Some(at), Some(limit)) = (self.next_cpu_check, self.plan.limits.cpu_time())
            && at <= now
        {
            let used = self.cpu_time();
            if used >= limit {
                self.end(Cause::Time(TimeKind::Cpu));
            }
            self.next_cpu_check = Some(now + self.soonest(limit.saturating_sub(used)));
        }
    }

    /// Samples the memory that the network holds, if there is one.
    fn network_memory(&self, now: Instant) -> Option<NetworkMemory> {
        let processes = self.context.container.cgroup().processes().ok()?;
        let process = processes.first().copied();
        let limit = self.plan.limits.memory().as_u64();
        let watch = NetworkMemory::new(now, process, UNACCEPTED_BYTES_BY_DEFAULT, limit);
        (self.plan.network != NetworkPolicy::None).then_some(watch)
    }

    /// Locks in gVisor are memory of its kernel, which the memory limit covers.
    fn limit_locks(&mut self) {
        let Some(agent) = self.context.container.agent() else { return };
        match LockLimit::start(agent) {
            Ok(limit) => self.lock_limit = Some(limit),
            Err(_) if self.plan.allow_missing.contains(&Protection::Memory) => {}
            Err(error) => {
                self.failure = Some(format!("count the file locks of the container: {error}"));
                self.end(Cause::Cancelled);
            }
        }
    }

    /// The earliest time until the remaining CPU time can be used up.
    fn soonest(&self, left: Duration) -> Duration {
        left.div_f64(self.plan.limits.cpus().max(1.0)).max(MIN_CPU_CHECK_INTERVAL)
    }

    fn cpu_time(&self) -> Duration {
        let total = self.context.container.cgroup().cpu_total().unwrap_or_default();
        total.saturating_sub(self.before.cpu_total)
    }

    fn sample(&mut self) {
        let container = self.context.container;
        let Ok(usage) = container.cgroup().usage() else { return };
        let own = container.own_processes();
        let processes = container.cgroup().processes().unwrap_or_default().into_iter();
        let program: Vec<u32> = processes
            .filter(|process| own.is_some() && Some(*process) != container.agent())
            .collect();
        if program.is_empty() && own.is_some() {
            // It has ended, and the agent is about to report it.
            return;
        }
        let own = own.unwrap_or(usage.pids_current.saturating_sub(1));
        // Only living processes are counted; the final numbers are known at the end, and values
        // never decrease.
        let moved = program.into_iter().filter_map(bytes_moved_by);
        let sum = moved.fold((0, 0), |sum: (u64, u64), moved| (sum.0 + moved.0, sum.1 + moved.1));
        self.moved = (self.moved.0.max(sum.0), self.moved.1.max(sum.1));
        let (read, written) = self.moved;
        self.observer.usage(UsageSample {
            cpu_ms: u64::try_from(self.cpu_time().as_millis()).unwrap_or(u64::MAX),
            memory_kb: usage.memory_current.saturating_sub(container.own_memory()) / 1024,
            processes: usage.pids_current.saturating_sub(own),
            io_read_bytes: read,
            io_write_bytes: written,
        });
    }

    /// Kills everything, without asking the program.
    fn end(&mut self, cause: Cause) {
        if self.cause.is_none() {
            self.cause = Some(cause);
            self.escalate(Step::Program);
        }
    }

    fn escalate(&mut self, step: Step) {
        self.escalation = match step {
            Step::Program => Some((Instant::now() + INIT_GRACE, Step::Container)),
            Step::Container => Some((Instant::now() + KILL_TIMEOUT, Step::GiveUp)),
            Step::GiveUp => None,
        };
        match step {
            Step::Program => self.channel.signal(SIGKILL),
            Step::Container => self.context.container.kill(),
            Step::GiveUp => {
                let seconds = KILL_TIMEOUT.as_secs();
                self.failure = Some(format!("the container did not end within {seconds} s"));
                self.is_over = true;
            }
        }
    }

    fn conclude(mut self) -> Result<StageOutcome, BackendError> {
        let at = Instant::now();
        if let Some(failure) = self.failure {
            return Err(failed("have the agent start the program", failure));
        }
        let cgroup = self.context.container.cgroup();
        let after =
            cgroup.usage().map_err(|error| failed("read what the container used", error))?;
        let oom_kills = cgroup.oom_kills();
        let oom_kills =
            oom_kills.map_err(|error| failed("read the OOM counter of the container", error))?;
        let started = self.started.unwrap_or(at);
        let usage = self.usage(&after, at - started);
        let status = self.exit.as_ref().map(|exit| (exit.code, exit.signal));
        let has = |protection: Protection| self.context.enforced.contains(&protection);
        let ended = ending(&has, self.plan, self.cause, status, oom_kills, &usage)
            .ok_or_else(|| failed("watch the container", "it ended without an exit status"))?;
        let ended = match ended {
            Ending::Signaled(_) if self.has_used_all_memory(&usage) => Ending::OutOfMemory,
            ended => ended,
        };
        let placed: Vec<&InputFile> = self.plan.all_files().collect();
        let found = if self.exit.is_some() {
            collect(&mut self.channel, &self.plan.collect, &placed)
                .map_err(|error| failed("collect the program's files", error))?
        } else {
            // Its files are gone with it.
            sandbox_linux::collect::Collected::default()
        };
        let ending = match ended {
            Ending::Exited(_) | Ending::Signaled(_) if found.over_limit => Ending::TooManyFiles,
            ending => ending,
        };
        Ok(StageOutcome {
            ending,
            usage,
            stdout: self.kept.stdout,
            stderr: self.kept.stderr,
            output: self.kept.both,
            stdout_truncated: self.kept.stdout_truncated,
            stderr_truncated: self.kept.stderr_truncated,
            files: found.files,
            skipped: found.skipped,
            workspace: None,
            enforced: self.context.enforced,
            violations: self
                .violations
                .into_iter()
                .map(|(syscall, count)| Violation { syscall, count })
                .collect(),
            network: None,
            proxy_refusals: Vec::new(),
            start: self.context.start,
            prepare_time: started - self.context.begun,
            collect_time: at.elapsed(),
        })
    }

    /// Whether the program reached its memory limit without being killed there: gVisor has memory
    /// beyond the limit, in which a runtime may notice that it has no more, and abort.
    fn has_used_all_memory(&self, usage: &StageUsage) -> bool {
        self.context.container.own_memory() > 0
            && usage.memory_peak_kb * 1024 >= self.plan.limits.memory().as_u64()
    }

    fn usage(&self, after: &Usage, run_time: Duration) -> StageUsage {
        let none = ExitNotice::default();
        let notice = self.exit.as_ref().unwrap_or(&none);
        let total = after.cpu_total.saturating_sub(self.before.cpu_total);
        let (user, system) = (
            Duration::from_micros(notice.user_micros),
            Duration::from_micros(notice.system_micros),
        );
        // The cgroup has the total; the split comes from the processes that the agent reaped.
        let share = match (user + system).as_secs_f64() {
            0.0 => 1.0,
            both => user.as_secs_f64() / both,
        };
        let cpu_user = total.mul_f64(share.clamp(0.0, 1.0));
        let container = self.context.container;
        // gVisor's kernel may have used more, which is not the program's.
        let most = self.plan.limits.memory().as_u64();
        let memory_peak = after.memory_peak.map(|peak| peak.saturating_sub(container.own_memory()));
        let memory_peak = memory_peak.map(|peak| peak.min(most));
        let own = container.own_processes();
        let processes = own.zip(after.pids_peak).map(|(own, peak)| peak.saturating_sub(own));
        StageUsage {
            wall_time: wall_time(self.cause, self.exit.as_ref(), run_time),
            cpu_user,
            cpu_system: total.saturating_sub(cpu_user),
            memory_peak_kb: memory_peak.map_or(notice.max_rss_kib, |peak| peak / 1024),
            processes_peak: processes.unwrap_or(1).max(1),
            io_read_bytes: notice.read_bytes,
            io_write_bytes: notice.written_bytes,
        }
    }
}
