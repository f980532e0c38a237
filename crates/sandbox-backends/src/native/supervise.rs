//! The loop that watches one sandbox: its words, its clocks, its memory, and the wish to end it.
//!
//! Everything is judged from here, outside: the program can stop itself, close its streams, ignore
//! signals or hide in children, and none of that reaches this loop's clock or the kernel's counters.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;
use rustix::process::{Signal, pidfd_send_signal};
use sandbox_core::{
    BackendError, CancelToken, NetworkReport, Observer, Protection, StagePlan, TimeKind,
};
use sandbox_linux::cgroup::OomWatch;
use sandbox_linux::seccomp::{Notification, Notifications};
use sandbox_linux::{Received, StepError, ask_to_end};
use sandbox_protocol::notice::{ExitNotice, Notice};

use super::descriptors::PER_LONG_RUNNING;
use super::gate::OpenGate;
use super::host::Host;
use super::leave;
use super::network_memory::{NetworkMemory, UNACCEPTED_BYTES};
use super::order::Running;
use super::output::Kept;
use super::reach::{Ends, OpenNetwork};
use super::usage::{Sampler, process_id};
use crate::failed;
use crate::lock_limit::{LockLimit, SAMPLE_INTERVAL};

/// Between asking a cancelled program to end and ending it.
pub(crate) const GRACE: Duration = Duration::from_millis(500);
/// Between asking init to end everything and ending init: it only has to be scheduled once.
pub(crate) const INIT_GRACE: Duration = Duration::from_millis(300);
/// A killed namespace is dead long before this.
const END_TIME: Duration = Duration::from_secs(5);
/// A sandbox that is not built by then never will be.
pub(crate) const BUILD_TIME: Duration = Duration::from_secs(30);
/// With the output limit off, what is kept in memory is bounded all the same.
const MAX_OUTPUT_BYTES: usize = 64 << 20;
/// So many denied calls are answered at once. After that each waits a little: answering costs our CPU
/// time, which no limit of the program's covers, and a program can ask without end.
const FREE_ANSWERS: u64 = 1000;
const ANSWER_PAUSE: Duration = Duration::from_millis(1);
/// A program that runs as long as this has no more use for open control files until it ends.
const LONG_RUNNING: Duration = Duration::from_secs(1);
/// The CPU counter is looked at no more often than this.
pub(crate) const SHORTEST_CPU_CHECK: Duration = Duration::from_millis(2);

/// Why we ended a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    Time(TimeKind),
    Memory,
    Output,
    Cancelled,
}

/// How hard we try to end a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Init ends every process and can still report what they used.
    AskInit,
    /// The kernel ends init, and with it the whole namespace.
    KillInit,
    /// Nobody has said that it ended: its process tells, if the kernel let go of it.
    GiveUp,
}

/// What the loop saw.
pub(crate) struct Ended<'a> {
    pub(crate) running: Running<'a>,
    pub(crate) exit: Option<ExitNotice>,
    pub(crate) cause: Option<Cause>,
    /// The work directory, if it is that of a workspace.
    pub(crate) work: Option<OwnedFd>,
    pub(crate) kept: Kept,
    pub(crate) violations: BTreeMap<String, u64>,
    pub(crate) network: Option<NetworkReport>,
    pub(crate) turned_away: Vec<String>,
    pub(crate) prepare_time: Duration,
    pub(crate) run_time: Duration,
    /// When the last process was known to be gone.
    pub(crate) at: Instant,
}

struct Watch<'a> {
    host: &'a Host,
    plan: &'a StagePlan,
    observer: &'a mut dyn Observer,
    running: Running<'a>,
    cancelled: Arc<OwnedFd>,
    notifications: Option<Notifications>,
    /// Closed with everything that goes through it when the watch ends.
    gate: Option<OpenGate>,
    /// The same.
    network: Option<OpenNetwork>,
    /// What it is made of, as long as not all is there.
    ends: Ends,
    work: Option<OwnedFd>,
    kept: Kept,
    violations: BTreeMap<String, u64>,
    denied: u64,
    /// No denied call is answered before.
    next_answer: Option<Instant>,
    sampler: Option<Sampler>,
    lock_limit: Option<LockLimit>,
    /// When the program has run for so long that its locks are counted.
    lock_limit_start: Option<Instant>,
    begun: Instant,
    started: Option<Instant>,
    exit: Option<ExitNotice>,
    cause: Option<Cause>,
    /// What to do next to a program that is to end, and when.
    escalation: Option<(Instant, Step)>,
    failure: Option<StepError>,
    next_cpu_check: Option<Instant>,
    network_memory: Option<NetworkMemory>,
    /// When descriptors are given back that are not needed while the program runs.
    becomes_long: Option<Instant>,
    over: bool,
}

/// Watches until the program and everything it started has ended.
pub(crate) fn watch<'a>(
    host: &'a Host,
    mut running: Running<'a>,
    plan: &'a StagePlan,
    observer: &'a mut dyn Observer,
    cancel: &CancelToken,
    begun: Instant,
) -> Result<Ended<'a>, BackendError> {
    let cancelled = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
        .map_err(|error| failed("make a way to cancel", error))?;
    let cancelled = Arc::new(cancelled);
    let waker = Arc::clone(&cancelled);
    let _registration = cancel.on_cancel(move || {
        // The counter cannot be full: it is written once.
        let _ = rustix::io::write(&waker, &1_u64.to_ne_bytes());
    });
    let limit = if host.has(Protection::Output) {
        plan.limits.output().as_usize()
    } else {
        MAX_OUTPUT_BYTES
    };
    let notifications = running.denied_calls.take();
    let mut watch = Watch {
        host,
        plan,
        observer,
        running,
        cancelled,
        notifications,
        gate: None,
        network: None,
        ends: Ends::default(),
        work: None,
        kept: Kept::new(limit),
        violations: BTreeMap::new(),
        denied: 0,
        next_answer: None,
        sampler: None,
        lock_limit: None,
        lock_limit_start: None,
        begun,
        started: None,
        exit: None,
        cause: None,
        escalation: None,
        failure: None,
        next_cpu_check: None,
        network_memory: None,
        becomes_long: None,
        over: false,
    };
    if watch.running.has_begun {
        watch.start_clocks();
    }
    host.wait(|| watch.until_over())?;
    watch.finish()
}

/// What a turn of the loop listens to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Output,
    Slot,
    DeniedCall,
    Memory,
    Locks,
    Network,
    Cancel,
}

impl<'a> Watch<'a> {
    fn until_over(&mut self) -> Result<(), BackendError> {
        while !self.over {
            self.turn()?;
        }
        Ok(())
    }

    fn turn(&mut self) -> Result<(), BackendError> {
        for source in self.wait()? {
            match source {
                Source::Output => self.read(),
                Source::Slot => self.hear()?,
                Source::DeniedCall => {
                    self.answer_denied_call();
                }
                Source::Memory => self.look_at_memory(),
                Source::Locks => self.end_at_once(Cause::Memory),
                Source::Network => self.tell_of_network(),
                Source::Cancel => self.cancel(),
            }
        }
        self.look_at_clocks();
        Ok(())
    }

    /// Waits for the next thing to happen, and says what did.
    fn wait(&self) -> Result<Vec<Source>, BackendError> {
        let mut sources = Vec::with_capacity(8);
        let mut watched = Vec::with_capacity(8);
        let mut listen = |source, fd, flags| {
            sources.push(source);
            watched.push(PollFd::from_borrowed_fd(fd, flags));
        };
        for stream in self.running.streams.watched() {
            listen(Source::Output, stream, PollFlags::IN);
        }
        // Before the calls: the word that a program starts is older than the word that it ends.
        listen(Source::Slot, self.running.slot.slot.socket.as_fd(), PollFlags::IN);
        if let Some(notifications) = &self.notifications
            && self.next_answer.is_none()
        {
            listen(Source::DeniedCall, notifications.as_fd(), PollFlags::IN);
        }
        if let Some(network) = &self.network {
            listen(Source::Network, network.news(), PollFlags::IN);
        }
        if self.cause.is_none() {
            listen(Source::Cancel, self.cancelled.as_fd(), PollFlags::IN);
            if let Some(oom) = &self.running.oom {
                listen(Source::Memory, oom.fd(), oom.events());
            }
            if let Some(limit) = &self.lock_limit {
                listen(Source::Locks, limit.alarm(), PollFlags::IN);
            }
        }
        let left = self.next_alarm().saturating_duration_since(Instant::now());
        let timeout =
            Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: left.subsec_nanos().into() };
        match poll(&mut watched, Some(&timeout)) {
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(Vec::new()),
            Err(error) => return Err(failed("wait for the sandbox", error)),
        }
        let ready = watched.iter().map(|fd| !fd.revents().is_empty());
        Ok(sources
            .into_iter()
            .zip(ready)
            .filter_map(|(source, ready)| ready.then_some(source))
            .collect())
    }

    fn look_at_memory(&mut self) {
        if self.running.oom.as_mut().is_some_and(OomWatch::triggered) {
            self.end(Cause::Memory);
        }
    }

    fn next_alarm(&self) -> Instant {
        let wall = match self.started {
            Some(started) => started + self.wall_limit(),
            None => self.begun + BUILD_TIME,
        };
        let sample = self.sampler.as_ref().map(Sampler::next);
        // A program that is being ended has no other clock than that.
        let ending = match self.escalation {
            Some((at, _)) => [Some(at), None, None, None],
            None if self.cause.is_some() => [None, None, None, None],
            None => {
                let network = self.network_memory.as_ref().map(NetworkMemory::next);
                [Some(wall), self.next_cpu_check, network, self.lock_limit_start]
            }
        };
        let alarms =
            ending.into_iter().chain([sample, self.next_answer, self.becomes_long]).flatten();
        alarms.min().unwrap_or_else(|| Instant::now() + BUILD_TIME)
    }

    fn wall_limit(&self) -> Duration {
        if self.host.has(Protection::WallTime) {
            self.plan.limits.wall_time()
        } else {
            Duration::from_hours(1)
        }
    }

    fn read(&mut self) {
        self.running.streams.read(&mut self.kept, self.observer);
        if self.kept.is_over() {
            self.end(Cause::Output);
        }
    }

    /// Answers one denied call; false if there is none.
    fn answer_denied_call(&mut self) -> bool {
        let Some(notifications) = &self.notifications else {
            return false;
        };
        match notifications.receive() {
            Ok(Some(call)) => {
                self.answer(&call);
                return true;
            }
            Ok(None) if !notifications.is_over() => {}
            Ok(None) | Err(_) => self.notifications = None,
        }
        false
    }

    fn answer(&mut self, call: &Notification) {
        let is_farewell = call.is_farewell();
        if is_farewell && self.let_go(call.thread) {
            return;
        }
        let (name, errno) = self.host.refusal(call);
        if let Some(notifications) = &self.notifications {
            // A call whose thread died in the meantime needs no answer.
            let _ = notifications.refuse(call.id, errno);
        }
        self.denied += 1;
        if self.denied > FREE_ANSWERS {
            self.next_answer = Some(Instant::now() + ANSWER_PAUSE);
        }
        if !is_farewell {
            *self.violations.entry(name).or_default() += 1;
        }
    }

    /// Takes a runtime at its word that it ends; false if it has to do so itself. It stays where it is
    /// until its sandbox is taken down.
    fn let_go(&mut self, thread: u32) -> bool {
        let Some(started) = self.started else { return false };
        self.exit = leave::exit_of(&self.running.slot, thread, started.elapsed());
        if self.exit.is_some()
            && let Some(notifications) = self.notifications.take()
        {
            self.running.slot.leave_waiting(notifications);
            self.over = true;
        }
        self.over
    }

    fn hear(&mut self) -> Result<(), BackendError> {
        let received = self.running.slot.slot.try_receive();
        match received.map_err(|error| failed("hear from the sandbox", error))? {
            Received::Nothing => {}
            Received::Closed => {
                // Slot and init were killed, by the kernel for memory or by someone outside. Sockets close
                // before the rest of a namespace dies; only the end of process 1 says that it has.
                self.make_sure_of_the_end()?;
                self.over = true;
            }
            Received::Notice(notice, descriptors) => {
                if notice == Notice::Network {
                    self.open_network(descriptors);
                    return Ok(());
                }
                let descriptor = descriptors.into_iter().next();
                self.handle_notice(notice, descriptor);
            }
        }
        Ok(())
    }

    fn make_sure_of_the_end(&self) -> Result<(), BackendError> {
        let init = &self.running.slot.slot.init;
        let _ = pidfd_send_signal(init, Signal::KILL);
        let mut watched = [PollFd::new(init, PollFlags::IN)];
        let patience = Timespec { tv_sec: END_TIME.as_secs().cast_signed(), tv_nsec: 0 };
        match poll(&mut watched, Some(&patience)) {
            Ok(0) => Err(failed("end the sandbox", Errno::TIMEDOUT)),
            Ok(_) => Ok(()),
            Err(error) => Err(failed("wait for the end of the sandbox", error)),
        }
    }

    fn handle_notice(&mut self, notice: Notice, descriptor: Option<OwnedFd>) {
        match notice {
            // These were said while the slot was prepared, or are heeded before.
            Notice::Cloned
            | Notice::Ready { .. }
            | Notice::Confined
            | Notice::FilesWritten
            | Notice::Network => {}
            Notice::ProxyListener | Notice::Workspace if descriptor.is_none() => {
                let step = "receive the descriptor that belongs to a notice".to_owned();
                self.failure = Some(StepError { step, cause: Errno::BADMSG });
                self.end(Cause::Cancelled);
            }
            Notice::ProxyListener => self.open_gate(descriptor),
            Notice::Workspace => self.work = descriptor,
            Notice::Starting => {
                if let Some(listener) = descriptor {
                    self.notifications = Notifications::new(listener).ok();
                }
                self.start_clocks();
                if let Some(feed) = self.running.feed.take()
                    && feed.begin().is_err()
                {
                    let step = "give the program its standard input".to_owned();
                    self.failure = Some(StepError { step, cause: Errno::AGAIN });
                    self.end(Cause::Cancelled);
                }
            }
            Notice::Failed(failure) => self.failure = Some(failure.into()),
            Notice::Exited(exit) => {
                self.exit = Some(exit);
                // Init has waited for every other process before it said so.
                self.over = true;
            }
            Notice::Gone => self.over = true,
        }
    }

    fn open_gate(&mut self, listener: Option<OwnedFd>) {
        let (Some(listener), Some(gate)) = (listener, &self.plan.gate) else {
            return;
        };
        match OpenGate::open(listener, gate.clone()) {
            Ok(gate) => self.gate = Some(gate),
            Err(cause) => {
                let step = "open the gate".to_owned();
                self.failure = Some(StepError { step, cause });
                self.end(Cause::Cancelled);
            }
        }
    }

    fn open_network(&mut self, some: Vec<OwnedFd>) {
        let (Some(ends), Some(allow)) = (self.ends.take(some), &self.plan.allow) else {
            return;
        };
        match OpenNetwork::open(ends, Arc::clone(allow)) {
            Ok(network) => self.network = Some(network),
            Err(cause) => {
                let step = "open the network".to_owned();
                self.failure = Some(StepError { step, cause });
                self.end(Cause::Cancelled);
                return;
            }
        }
        // If init is gone, that is heard next.
        let _ = self.running.slot.slot.network_is_open();
    }

    fn tell_of_network(&mut self) {
        for event in self.network.as_ref().map(OpenNetwork::take_events).unwrap_or_default() {
            self.observer.network(event);
        }
    }

    fn start_clocks(&mut self) {
        let now = Instant::now();
        self.started = Some(now);
        self.next_cpu_check = self.plan.limits.cpu_time().map(|limit| now + self.soonest(limit));
        self.lock_limit_start = self.host.has(Protection::Memory).then_some(now + SAMPLE_INTERVAL);
        let init = self.running.slot.slot.init.as_fd();
        self.network_memory = self
            .host
            .limits_network_memory(self.plan)
            .map(|limit| NetworkMemory::new(now, process_id(init), UNACCEPTED_BYTES, limit));
        // Samples need them all.
        self.becomes_long = self.plan.usage_interval.is_none().then_some(now + LONG_RUNNING);
        self.sampler = self.plan.usage_interval.map(|interval| Sampler::new(interval, now, init));
    }

    /// The soonest moment at which this much CPU time can have been used.
    fn soonest(&self, left: Duration) -> Duration {
        let cpus = self.plan.limits.cpus().max(1.0);
        left.div_f64(cpus).max(SHORTEST_CPU_CHECK)
    }

    fn look_at_clocks(&mut self) {
        let now = Instant::now();
        if self.next_answer.is_some_and(|at| at <= now) {
            self.next_answer = None;
        }
        if self.becomes_long.is_some_and(|at| at <= now) {
            self.becomes_long = None;
            self.running.slot.slot.cgroup.close_files();
            self.running.slot.permit.shrink(PER_LONG_RUNNING);
        }
        if let Some((at, step)) = self.escalation
            && at <= now
        {
            self.escalate(step);
        }
        if let Some(sampler) = &mut self.sampler
            && sampler.next() <= now
        {
            let slot = &self.running.slot;
            if let Some(sample) = sampler.take(now, slot.slot.cgroup.as_ref(), &slot.before) {
                self.observer.usage(sample);
            }
        }
        if self.cause.is_some() {
            return;
        }
        if let Some(memory) = &mut self.network_memory
            && memory.next() <= now
            && memory.is_over(now, self.running.slot.slot.cgroup.as_ref())
        {
            self.end(Cause::Memory);
            return;
        }
        match self.started {
            Some(started) if now >= started + self.wall_limit() => {
                self.end(Cause::Time(TimeKind::Wall));
            }
            None if now >= self.begun + BUILD_TIME => {
                let step = "start the program in time".to_owned();
                self.failure = Some(StepError { step, cause: Errno::TIMEDOUT });
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
            self.check_cpu_time(now, limit);
        }
    }

    fn limit_locks(&mut self) {
        let init = &self.running.slot.slot.init;
        match process_id(init.as_fd()).ok_or(Errno::SRCH.into()).and_then(LockLimit::start) {
            Ok(limit) => self.lock_limit = Some(limit),
            // Its locks went with it.
            Err(_) if has_ended(init) => {}
            Err(_) if self.plan.allow_missing.contains(&Protection::Memory) => {}
            Err(error) => {
                let cause = Errno::from_io_error(&error).unwrap_or(Errno::IO);
                let step = "count the file locks of the sandbox".to_owned();
                self.failure = Some(StepError { step, cause });
                self.end(Cause::Cancelled);
            }
        }
    }

    fn check_cpu_time(&mut self, now: Instant, limit: Duration) {
        let slot = &self.running.slot;
        let used = match slot.slot.cgroup.cpu_total() {
            Ok(total) if self.host.enforces.cpu_accounting => {
                total.saturating_sub(slot.before.cpu_total)
            }
            _ => Duration::ZERO,
        };
        if used >= limit && self.host.has(Protection::CpuTime) {
            self.end(Cause::Time(TimeKind::Cpu));
        } else {
            self.next_cpu_check = Some(now + self.soonest(limit.saturating_sub(used)));
        }
    }

    /// A cancelled program may say goodbye first.
    fn cancel(&mut self) {
        if self.cause.is_none() {
            self.cause = Some(Cause::Cancelled);
            self.escalation = Some((Instant::now() + GRACE, Step::AskInit));
            let _ = pidfd_send_signal(&self.running.slot.slot.init, Signal::TERM);
        }
    }

    /// Ends everything, without asking the program.
    fn end(&mut self, cause: Cause) {
        if self.cause.is_none() {
            self.cause = Some(cause);
            self.escalate(Step::AskInit);
        }
    }

    /// The same without init, which shares the program's CPU limit and may wait for a turn.
    fn end_at_once(&mut self, cause: Cause) {
        if self.cause.is_none() {
            self.cause = Some(cause);
            self.escalate(Step::KillInit);
        }
    }

    fn escalate(&mut self, step: Step) {
        let now = Instant::now();
        self.escalation = match step {
            Step::AskInit => Some((now + INIT_GRACE, Step::KillInit)),
            Step::KillInit => Some((now + END_TIME, Step::GiveUp)),
            Step::GiveUp => {
                if self.make_sure_of_the_end().is_err() {
                    let step = "end the sandbox".to_owned();
                    self.failure = Some(StepError { step, cause: Errno::TIMEDOUT });
                }
                self.over = true;
                None
            }
        };
        let init = &self.running.slot.slot.init;
        // An init that is gone already needs neither.
        let _ = match step {
            Step::AskInit => ask_to_end(init.as_fd()),
            Step::KillInit => pidfd_send_signal(init, Signal::KILL),
            Step::GiveUp => Ok(()),
        };
    }

    fn finish(mut self) -> Result<Ended<'a>, BackendError> {
        let now = Instant::now();
        let network = self.network.take().map(|network| {
            let (events, report) = network.close();
            for event in events {
                self.observer.network(event);
            }
            report
        });
        let turned_away = self.gate.take().map(OpenGate::close).unwrap_or_default();
        self.running.streams.drain(&mut self.kept, self.observer);
        while self.answer_denied_call() {}
        if let Some(failure) = self.failure {
            return Err(failed("build the sandbox", failure));
        }
        if self.kept.is_over() {
            self.cause = self.cause.or(Some(Cause::Output));
        }
        let started = self.started.unwrap_or(now);
        Ok(Ended {
            running: self.running,
            exit: self.exit,
            cause: self.cause,
            work: self.work,
            kept: self.kept,
            violations: self.violations,
            network,
            turned_away,
            prepare_time: started - self.begun,
            run_time: now - started,
            at: now,
        })
    }
}

fn has_ended(process: &OwnedFd) -> bool {
    let mut watched = [PollFd::new(process, PollFlags::IN)];
    poll(&mut watched, Some(&Timespec::default())).is_ok_and(|count| count > 0)
}
