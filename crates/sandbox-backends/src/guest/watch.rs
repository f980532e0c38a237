//! Watching a program through its agent: output, clocks, memory, and the end.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;
use sandbox_core::{
    BackendError, CancelToken, Ending, InputFile, NetworkPolicy, Observer, Protection,
    StageFigures, StageOutcome, StagePlan, Start, StreamKind, TimeKind, UsageSample, Violation,
    WorkspaceOutcome,
};
use sandbox_linux::cgroup::{Cgroup, OomWatch, Usage};
use sandbox_linux::container_inodes::SharedInodes;
use sandbox_linux::guest;
use sandbox_protocol::Message as _;
use sandbox_protocol::agent::AgentEvent;
use sandbox_protocol::notice::ExitNotice;

use super::channel::{Channel, Heard};
use super::collect::collect;
use crate::failed;
use crate::lock_limit::{LockLimit, SAMPLE_INTERVAL};
use crate::native::network_memory::{NetworkMemory, UNACCEPTED_BYTES_BY_DEFAULT};
use crate::native::output::Kept;
use crate::native::supervise::{BUILD_TIME, Cause, GRACE, INIT_GRACE, SHORTEST_CPU_CHECK};
use crate::native::usage::bytes_moved_by;
use crate::native::verdict::{ending, wall_time};

/// How long an agent that was killed may take to be gone.
const END_TIME: Duration = Duration::from_secs(10);
/// So many messages are heeded before the clocks are looked at again.
const MAX_MESSAGES: usize = 64;
/// The signals that ask a program to end, and that end it.
const SIGTERM: u8 = 15;
const SIGKILL: u8 = 9;

/// A container with an agent in it that waits for its order.
pub(crate) trait Container {
    /// What bounds and counts what happens in it.
    fn cgroup(&self) -> &dyn Cgroup;

    /// The way to the agent. It is given once.
    fn take_channel(&mut self) -> Result<Channel, BackendError>;

    /// Ends everything in it, at once.
    fn kill(&self);

    /// The agent's process, if it can be told from the program's.
    fn agent(&self) -> Option<u32>;

    /// The program's user and group on the host.
    fn program_id(&self) -> u32;

    /// What a program in it can name that the host has in common with it.
    fn shared_inodes(&self) -> &SharedInodes;

    /// How many processes of the runtime are counted with the program's; none if they cannot be told from them.
    fn own_processes(&self) -> Option<u64>;

    /// Memory that was in use before the program came, and is not the program's.
    fn own_memory(&self) -> u64 {
        0
    }
}

/// Whether anybody is alive in it. A runtime takes its time to tell of an end.
pub(crate) fn is_populated(container: &dyn Container) -> bool {
    container.cgroup().processes().is_ok_and(|processes| !processes.is_empty())
}

/// What stands around the program, and how it came to be.
pub(crate) struct Around<'a> {
    pub(crate) container: &'a dyn Container,
    /// What the report says of it.
    pub(crate) enforced: Vec<Protection>,
    pub(crate) start: Start,
    /// The name of a denied call.
    pub(crate) name_of: &'a dyn Fn(u32, [u64; 6]) -> String,
    /// When the stage was asked for.
    pub(crate) begun: Instant,
}

/// Who is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// The program, by the agent, which then ends everything else and still hands over files.
    Program,
    /// Everything, the agent too.
    Container,
    /// Nobody any more: the runtime does not say that the container ended.
    GiveUp,
}

struct Watch<'a> {
    around: Around<'a>,
    channel: Channel,
    plan: &'a StagePlan,
    observer: &'a mut dyn Observer,
    cancelled: OwnedFd,
    oom: Option<OomWatch>,
    before: Usage,
    kept: Kept,
    violations: BTreeMap<String, u64>,
    started: Option<Instant>,
    exit: Option<ExitNotice>,
    cause: Option<Cause>,
    /// What is done when, if it has not ended by then.
    escalation: Option<(Instant, Step)>,
    next_cpu_check: Option<Instant>,
    network_memory: Option<NetworkMemory>,
    next_sample: Option<Instant>,
    lock_limit: Option<LockLimit>,
    /// When the program has run for so long that its locks are counted.
    lock_limit_start: Option<Instant>,
    /// What was last told that it read and wrote.
    moved: (u64, u64),
    failure: Option<String>,
    /// There may be messages that were read and not heeded.
    is_behind: bool,
    is_over: bool,
}

/// Has the agent carry out a stage, and says what came of it.
pub(crate) fn carry_out(
    around: Around<'_>,
    channel: Channel,
    plan: &StagePlan,
    exec: &[u8],
    observer: &mut dyn Observer,
    cancel: &CancelToken,
) -> Result<StageOutcome, BackendError> {
    let cancelled = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
        .map_err(|error| failed("make a way to cancel", error))?;
    let waker = cancelled.try_clone().map_err(|error| failed("make a way to cancel", error))?;
    let _registration = cancel.on_cancel(move || {
        // The counter cannot be full: it is written once.
        let _ = rustix::io::write(&waker, &1_u64.to_ne_bytes());
    });
    let cgroup = around.container.cgroup();
    let counted = cgroup.reset_peak().and_then(|()| cgroup.usage());
    let before = counted.map_err(|error| failed("read what the container used", error))?;
    let oom = cgroup.oom_watch().map_err(|error| failed("watch the memory", error))?;
    let told = channel.send_frame(exec).and_then(|()| channel.feed(&plan.stdin));
    told.map_err(|error| failed("send the request to the agent", error))?;
    let mut watch = Watch {
        channel,
        plan,
        observer,
        cancelled,
        oom,
        before,
        kept: Kept::new(plan.limits.output().as_usize()),
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
        around,
    };
    while !watch.is_over {
        watch.turn()?;
    }
    watch.conclude()
}

/// What came of a stage that had not memory enough for what it was to begin with.
pub(crate) fn without_memory(around: Around<'_>) -> Result<StageOutcome, BackendError> {
    let used = around.container.cgroup().usage();
    let used = used.map_err(|error| failed("read what the container used", error))?;
    let memory_peak_kb = used.memory_peak.unwrap_or(used.memory_current) / 1024;
    let nothing = WorkspaceOutcome { written: None, refusal: None, left_out: Vec::new() };
    Ok(StageOutcome {
        ending: Ending::OutOfMemory,
        figures: StageFigures { memory_peak_kb, ..StageFigures::default() },
        stdout: Vec::new(),
        stderr: Vec::new(),
        output: Vec::new(),
        stdout_truncated: false,
        stderr_truncated: false,
        files: Vec::new(),
        skipped: Vec::new(),
        workspace: Some(nothing),
        enforced: around.enforced,
        violations: Vec::new(),
        network: None,
        turned_away: Vec::new(),
        start: around.start,
        prepare_time: around.begun.elapsed(),
        collect_time: Duration::ZERO,
    })
}

impl Watch<'_> {
    fn turn(&mut self) -> Result<(), BackendError> {
        let now = Instant::now();
        let left = self.next_alarm().saturating_duration_since(now);
        // What has been read already is nothing to wait for.
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
            self.escalation = Some((Instant::now() + GRACE, Step::Program));
            self.channel.signal(SIGTERM);
        }
        if is_memory && self.oom.as_mut().is_some_and(OomWatch::triggered) {
            self.end(Cause::Memory);
        }
        if has_too_many_locks && self.cause.is_none() {
            // Not by the agent, which shares the program's CPU limit and may wait for a turn.
            self.cause = Some(Cause::Memory);
            self.escalate(Step::Container);
        }
        self.hear()?;
        self.look_at_clocks();
        Ok(())
    }

    fn hear(&mut self) -> Result<(), BackendError> {
        // Not for ever: a program may write as fast as we read, and the clocks go on.
        self.is_behind = false;
        for _ in 0..MAX_MESSAGES {
            match self.channel.hear() {
                Ok(Heard::Nothing) => return Ok(()),
                Ok(Heard::End) => {
                    self.is_over = true;
                    return Ok(());
                }
                Ok(Heard::Message(message)) => self.handle_event(&message)?,
                Err(error) => return Err(failed("hear from the agent", error)),
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
                let name = (self.around.name_of)(syscall, arguments);
                *self.violations.entry(name).or_default() += 1;
            }
            AgentEvent::Exited(exit) => {
                self.exit = Some(guest::exit_notice(exit));
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

    fn next_alarm(&self) -> Instant {
        let wall = match self.started {
            Some(started) => started + self.plan.limits.wall_time(),
            None => self.around.begun + BUILD_TIME,
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
        alarms.min().unwrap_or_else(|| Instant::now() + END_TIME)
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
            && memory.is_over(now, self.around.container.cgroup())
        {
            self.end(Cause::Memory);
            return;
        }
        match self.started {
            Some(started) if now >= started + self.plan.limits.wall_time() => {
                self.end(Cause::Time(TimeKind::Wall));
            }
            None if now >= self.around.begun + BUILD_TIME => {
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

    /// What watches the memory that a network holds, if there is one.
    fn network_memory(&self, now: Instant) -> Option<NetworkMemory> {
        let processes = self.around.container.cgroup().processes().ok()?;
        let process = processes.first().copied();
        let limit = self.plan.limits.memory().as_u64();
        let watch = NetworkMemory::new(now, process, UNACCEPTED_BYTES_BY_DEFAULT, limit);
        (self.plan.network != NetworkPolicy::None).then_some(watch)
    }

    /// Locks in a kernel of the runtime's own are memory of that kernel, which the memory limit counts.
    fn limit_locks(&mut self) {
        let Some(agent) = self.around.container.agent() else { return };
        match LockLimit::start(agent) {
            Ok(limit) => self.lock_limit = Some(limit),
            Err(_) if self.plan.allow_missing.contains(&Protection::Memory) => {}
            Err(error) => {
                self.failure = Some(format!("count the file locks of the container: {error}"));
                self.end(Cause::Cancelled);
            }
        }
    }

    /// The soonest moment at which this much CPU time can have been used.
    fn soonest(&self, left: Duration) -> Duration {
        left.div_f64(self.plan.limits.cpus().max(1.0)).max(SHORTEST_CPU_CHECK)
    }

    fn cpu_time(&self) -> Duration {
        let total = self.around.container.cgroup().cpu_total().unwrap_or_default();
        total.saturating_sub(self.before.cpu_total)
    }

    fn sample(&mut self) {
        let container = self.around.container;
        let Ok(usage) = container.cgroup().usage() else { return };
        let own = container.own_processes();
        let processes = container.cgroup().processes().unwrap_or_default().into_iter();
        let program: Vec<u32> = processes
            .filter(|process| own.is_some() && Some(*process) != container.agent())
            .collect();
        if program.is_empty() && own.is_some() {
            // It has ended, and the agent is about to say so.
            return;
        }
        let own = own.unwrap_or(usage.pids_current.saturating_sub(1));
        // Of the living; what the dead have moved is known at the end, and nothing is taken back.
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

    /// Ends everything, without asking the program.
    fn end(&mut self, cause: Cause) {
        if self.cause.is_none() {
            self.cause = Some(cause);
            self.escalate(Step::Program);
        }
    }

    fn escalate(&mut self, step: Step) {
        self.escalation = match step {
            Step::Program => Some((Instant::now() + INIT_GRACE, Step::Container)),
            Step::Container => Some((Instant::now() + END_TIME, Step::GiveUp)),
            Step::GiveUp => None,
        };
        match step {
            Step::Program => self.channel.signal(SIGKILL),
            Step::Container => self.around.container.kill(),
            Step::GiveUp => {
                let seconds = END_TIME.as_secs();
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
        let cgroup = self.around.container.cgroup();
        let after =
            cgroup.usage().map_err(|error| failed("read what the container used", error))?;
        let oom_kills = cgroup.oom_kills();
        let oom_kills = oom_kills.map_err(|error| failed("read why the container ended", error))?;
        let started = self.started.unwrap_or(at);
        let figures = self.figures(&after, at - started);
        let told = self.exit.as_ref().map(|exit| (exit.code, exit.signal));
        let has = |protection: Protection| self.around.enforced.contains(&protection);
        let ended = ending(&has, self.plan, self.cause, told, oom_kills, &figures)
            .ok_or_else(|| failed("watch the container", "it ended without saying how"))?;
        let ended = match ended {
            Ending::Signaled(_) if self.has_used_all_memory(&figures) => Ending::OutOfMemory,
            ended => ended,
        };
        let placed: Vec<&InputFile> = self.plan.all_files().collect();
        let found = if self.exit.is_some() {
            collect(&mut self.channel, &self.plan.collect, &placed)
                .map_err(|error| failed("bring back what the program left", error))?
        } else {
            // Its files went with it.
            sandbox_linux::collect::Collected::default()
        };
        let ending = match ended {
            Ending::Exited(_) | Ending::Signaled(_) if found.over_limit => Ending::TooManyFiles,
            ending => ending,
        };
        Ok(StageOutcome {
            ending,
            figures,
            stdout: self.kept.stdout,
            stderr: self.kept.stderr,
            output: self.kept.both,
            stdout_truncated: self.kept.stdout_truncated,
            stderr_truncated: self.kept.stderr_truncated,
            files: found.files,
            skipped: found.skipped,
            workspace: None,
            enforced: self.around.enforced,
            violations: self
                .violations
                .into_iter()
                .map(|(syscall, count)| Violation { syscall, count })
                .collect(),
            network: None,
            turned_away: Vec::new(),
            start: self.around.start,
            prepare_time: started - self.around.begun,
            collect_time: at.elapsed(),
        })
    }

    /// Whether the program came to its limit without being ended there: a kernel of the container's own has room
    /// beside it, in which a runtime may notice by itself that it has no more, and abort.
    fn has_used_all_memory(&self, figures: &StageFigures) -> bool {
        self.around.container.own_memory() > 0
            && figures.memory_peak_kb * 1024 >= self.plan.limits.memory().as_u64()
    }

    fn figures(&self, after: &Usage, run_time: Duration) -> StageFigures {
        let none = ExitNotice::default();
        let told = self.exit.as_ref().unwrap_or(&none);
        let total = after.cpu_total.saturating_sub(self.before.cpu_total);
        let (user, system) =
            (Duration::from_micros(told.user_micros), Duration::from_micros(told.system_micros));
        // The cgroup knows the total; the split comes from whom the agent waited for.
        let share = match (user + system).as_secs_f64() {
            0.0 => 1.0,
            both => user.as_secs_f64() / both,
        };
        let cpu_user = total.mul_f64(share.clamp(0.0, 1.0));
        let container = self.around.container;
        // A container's kernel may have had more, which is not the program's.
        let most = self.plan.limits.memory().as_u64();
        let memory_peak = after.memory_peak.map(|peak| peak.saturating_sub(container.own_memory()));
        let memory_peak = memory_peak.map(|peak| peak.min(most));
        let own = container.own_processes();
        let processes = own.zip(after.pids_peak).map(|(own, peak)| peak.saturating_sub(own));
        StageFigures {
            wall_time: wall_time(self.cause, self.exit.as_ref(), run_time),
            cpu_user,
            cpu_system: total.saturating_sub(cpu_user),
            memory_peak_kb: memory_peak.map_or(told.max_rss_kib, |peak| peak / 1024),
            processes_peak: processes.unwrap_or(1).max(1),
            io_read_bytes: told.read_bytes,
            io_write_bytes: told.written_bytes,
        }
    }
}
