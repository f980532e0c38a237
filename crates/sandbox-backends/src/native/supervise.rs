//! The supervisor loop of one sandbox: output, notices, denied calls, limits and cancellation.
//!
//! All limits are enforced from outside: a program can stop itself, close its streams, ignore
//! signals or hide in child processes, and none of that affects this loop's clock or the kernel's
//! counters.

mod denied_calls;
mod monitors;

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

use super::early_exit;
use super::egress::{NetworkSockets, OpenNetwork};
use super::egress_proxy::RunningProxy;
use super::exec_request::Running;
use super::host::Host;
use super::output::CapturedOutput;
use super::usage::Sampler;
use crate::error::failed;
use denied_calls::DeniedCalls;
use monitors::Monitors;

/// Time between SIGTERM and SIGKILL for a cancelled program.
pub(crate) const TERM_GRACE: Duration = Duration::from_millis(500);
/// Time that init has to kill every process and report before it is killed itself.
pub(crate) const INIT_GRACE: Duration = Duration::from_millis(300);
/// A killed namespace is gone long before this.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum time to build a sandbox and start its program.
pub(crate) const BUILD_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum output that is kept in memory if the output limit is off.
const MAX_OUTPUT_BYTES: usize = 64 << 20;
/// Minimum interval between reads of the CPU time counter.
pub(crate) const MIN_CPU_CHECK_INTERVAL: Duration = Duration::from_millis(2);

/// Why the supervisor ended a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    Time(TimeKind),
    Memory,
    Output,
    Cancelled,
}

/// The next step to end a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Ask init to kill every process and to report their usage.
    AskInit,
    /// Kill init, and with it the whole namespace.
    KillInit,
    /// No notice arrived: check whether init is gone.
    GiveUp,
}

/// What the loop observed.
pub(crate) struct Ended<'a> {
    pub(crate) running: Running<'a>,
    pub(crate) exit: Option<ExitNotice>,
    pub(crate) cause: Option<Cause>,
    /// The work directory, if it is a workspace.
    pub(crate) work: Option<OwnedFd>,
    pub(crate) kept: CapturedOutput,
    pub(crate) violations: BTreeMap<String, u64>,
    pub(crate) network: Option<NetworkReport>,
    pub(crate) proxy_refusals: Vec<String>,
    pub(crate) prepare_time: Duration,
    pub(crate) run_time: Duration,
    /// When the last process was gone.
    pub(crate) at: Instant,
}

struct Watch<'a> {
    host: &'a Host,
    plan: &'a StagePlan,
    observer: &'a mut dyn Observer,
    running: Running<'a>,
    cancelled: Arc<OwnedFd>,
    denied_calls: DeniedCalls,
    /// Dropping it closes its connections.
    egress_proxy: Option<RunningProxy>,
    /// Dropping it closes its connections.
    network: Option<OpenNetwork>,
    /// Sockets of the network, until all have arrived.
    ends: NetworkSockets,
    work: Option<OwnedFd>,
    kept: CapturedOutput,
    sampler: Option<Sampler>,
    monitors: Monitors,
    begun: Instant,
    started: Option<Instant>,
    exit: Option<ExitNotice>,
    cause: Option<Cause>,
    /// The next step of ending the program, and when to take it.
    escalation: Option<(Instant, Step)>,
    failure: Option<StepError>,
    next_cpu_check: Option<Instant>,
    over: bool,
}

/// Supervises until the program and everything it started have ended.
pub(crate) fn watch<'a>(
    host: &'a Host,
    mut running: Running<'a>,
    plan: &'a StagePlan,
    observer: &'a mut dyn Observer,
    cancel: &CancelToken,
    begun: Instant,
) -> Result<Ended<'a>, BackendError> {
    let cancelled = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
        .map_err(|error| failed("make the eventfd for cancellation", error))?;
    let cancelled = Arc::new(cancelled);
    let waker = Arc::clone(&cancelled);
    let _registration = cancel.on_cancel(move || {
        // The counter cannot overflow: it is written once.
        let _ = rustix::io::write(&waker, &1_u64.to_ne_bytes());
    });
    let limit = if host.has(Protection::Output) {
        plan.limits.output().as_usize()
    } else {
        MAX_OUTPUT_BYTES
    };
    let denied_calls = DeniedCalls::new(running.denied_calls.take());
    let mut watch = Watch {
        host,
        plan,
        observer,
        running,
        cancelled,
        denied_calls,
        egress_proxy: None,
        network: None,
        ends: NetworkSockets::default(),
        work: None,
        kept: CapturedOutput::new(limit),
        sampler: None,
        monitors: Monitors::default(),
        begun,
        started: None,
        exit: None,
        cause: None,
        escalation: None,
        failure: None,
        next_cpu_check: None,
        over: false,
    };
    if watch.running.has_begun {
        watch.start_clocks();
    }
    host.wait(|| watch.until_over())?;
    watch.finish()
}

/// Event sources of the loop.
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
                Source::Slot => self.recv_notice()?,
                Source::DeniedCall => {
                    self.answer_denied_call();
                }
                Source::Memory => self.check_memory(),
                Source::Locks => self.end_at_once(Cause::Memory),
                Source::Network => self.report_network_events(),
                Source::Cancel => self.cancel(),
            }
        }
        self.check_clocks();
        Ok(())
    }

    /// Waits for the next event or deadline; returns the ready sources.
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
        // Before denied calls: the notice that a program starts must be handled before its early
        // exit.
        listen(Source::Slot, self.running.slot.slot.socket.as_fd(), PollFlags::IN);
        if let Some(listener) = self.denied_calls.listener() {
            listen(Source::DeniedCall, listener, PollFlags::IN);
        }
        if let Some(network) = &self.network {
            listen(Source::Network, network.events_ready(), PollFlags::IN);
        }
        if self.cause.is_none() {
            listen(Source::Cancel, self.cancelled.as_fd(), PollFlags::IN);
            if let Some(oom) = &self.running.oom {
                listen(Source::Memory, oom.fd(), oom.events());
            }
            if let Some(alarm) = self.monitors.lock_alarm() {
                listen(Source::Locks, alarm, PollFlags::IN);
            }
        }
        let left = self.next_deadline().saturating_duration_since(Instant::now());
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

    fn check_memory(&mut self) {
        if self.running.oom.as_mut().is_some_and(OomWatch::triggered) {
            self.end(Cause::Memory);
        }
    }

    fn next_deadline(&self) -> Instant {
        let wall = match self.started {
            Some(started) => started + self.wall_limit(),
            None => self.begun + BUILD_TIMEOUT,
        };
        let sample = self.sampler.as_ref().map(Sampler::next);
        // While a program is being ended, no other deadline applies.
        let ending = match self.escalation {
            Some((at, _)) => [Some(at), None, None, None],
            None if self.cause.is_some() => [None, None, None, None],
            None => [
                Some(wall),
                self.next_cpu_check,
                self.monitors.next_network_check(),
                self.monitors.lock_limit_start(),
            ],
        };
        let alarms = ending
            .into_iter()
            .chain([sample, self.denied_calls.next_answer(), self.monitors.descriptor_release()])
            .flatten();
        alarms.min().unwrap_or_else(|| Instant::now() + BUILD_TIMEOUT)
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
        let Some(call) = self.denied_calls.receive() else { return false };
        self.answer(&call);
        true
    }

    fn answer(&mut self, call: &Notification) {
        if !(call.is_early_exit() && self.accept_early_exit(call.thread)) {
            self.denied_calls.refuse(call, self.host);
        }
    }

    /// Ends the execution if the runtime announced its exit and may be killed later; false if it
    /// must exit by itself.
    fn accept_early_exit(&mut self, thread: u32) -> bool {
        let Some(started) = self.started else { return false };
        self.exit = early_exit::exit_of(&self.running.slot, thread, started.elapsed());
        if self.exit.is_some()
            && let Some(listener) = self.denied_calls.take_listener()
        {
            self.running.slot.leave_waiting(listener);
            self.over = true;
        }
        self.over
    }

    fn recv_notice(&mut self) -> Result<(), BackendError> {
        let received = self.running.slot.slot.try_receive();
        match received.map_err(|error| failed("receive from the sandbox", error))? {
            Received::Nothing => {}
            Received::Closed => {
                // Init was killed, by the kernel for lack of memory or from outside. Sockets close
                // before the rest of a namespace dies; only the end of process 1 proves that it is
                // gone.
                self.wait_for_end()?;
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

    fn wait_for_end(&self) -> Result<(), BackendError> {
        let init = &self.running.slot.slot.init;
        let _ = pidfd_send_signal(init, Signal::KILL);
        let mut watched = [PollFd::new(init, PollFlags::IN)];
        let timeout = Timespec { tv_sec: KILL_TIMEOUT.as_secs().cast_signed(), tv_nsec: 0 };
        match poll(&mut watched, Some(&timeout)) {
            Ok(0) => Err(failed("end the sandbox", Errno::TIMEDOUT)),
            Ok(_) => Ok(()),
            Err(error) => Err(failed("wait for the end of the sandbox", error)),
        }
    }

    fn handle_notice(&mut self, notice: Notice, descriptor: Option<OwnedFd>) {
        match notice {
            // Sent while the slot was prepared, or handled elsewhere.
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
            Notice::ProxyListener => self.start_egress_proxy(descriptor),
            Notice::Workspace => self.work = descriptor,
            Notice::Starting => {
                if let Some(listener) = descriptor {
                    self.denied_calls.listen(Notifications::new(listener).ok());
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
                // Init reports only after it has reaped every other process.
                self.over = true;
            }
            Notice::Gone => self.over = true,
        }
    }

    fn start_egress_proxy(&mut self, listener: Option<OwnedFd>) {
        let (Some(listener), Some(egress_proxy)) = (listener, &self.plan.egress_proxy) else {
            return;
        };
        match RunningProxy::open(listener, egress_proxy.clone()) {
            Ok(egress_proxy) => self.egress_proxy = Some(egress_proxy),
            Err(cause) => {
                let step = "start the egress proxy".to_owned();
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
        // If init is gone, the closed socket is noticed next.
        let _ = self.running.slot.slot.network_is_open();
    }

    fn report_network_events(&mut self) {
        for event in self.network.as_ref().map(OpenNetwork::take_events).unwrap_or_default() {
            self.observer.network(event);
        }
    }

    fn start_clocks(&mut self) {
        let now = Instant::now();
        self.started = Some(now);
        self.next_cpu_check =
            self.plan.limits.cpu_time().map(|limit| now + self.next_cpu_check_delay(limit));
        let init = self.running.slot.slot.init.as_fd();
        self.monitors = Monitors::start(self.host, self.plan, init, now);
        self.sampler = self.plan.usage_interval.map(|interval| Sampler::new(interval, now, init));
    }

    /// The earliest time until the remaining CPU time can be used up.
    fn next_cpu_check_delay(&self, left: Duration) -> Duration {
        let cpus = self.plan.limits.cpus().max(1.0);
        left.div_f64(cpus).max(MIN_CPU_CHECK_INTERVAL)
    }

    fn check_clocks(&mut self) {
        let now = Instant::now();
        self.denied_calls.resume(now);
        self.monitors.release_descriptors(now, &self.running.slot);
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
        if self.monitors.exceeds_network_memory(now, self.running.slot.slot.cgroup.as_ref()) {
            self.end(Cause::Memory);
            return;
        }
        match self.started {
            Some(started) if now >= started + self.wall_limit() => {
                self.end(Cause::Time(TimeKind::Wall));
            }
            None if now >= self.begun + BUILD_TIMEOUT => {
                let step = "start the program in time".to_owned();
                self.failure = Some(StepError { step, cause: Errno::TIMEDOUT });
                self.end(Cause::Cancelled);
            }
            _ => {}
        }
        if let Err(failure) =
            self.monitors.limit_locks(now, &self.running.slot.slot.init, self.plan)
        {
            self.failure = Some(failure);
            self.end(Cause::Cancelled);
        }
        if let (Some(at), Some(limit)) = (self.next_cpu_check, self.plan.limits.cpu_time())
            && at <= now
        {
            self.check_cpu_time(now, limit);
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
            self.next_cpu_check = Some(now + self.next_cpu_check_delay(limit.saturating_sub(used)));
        }
    }

    /// Sends SIGTERM to the program and kills it after a grace period.
    fn cancel(&mut self) {
        if self.cause.is_none() {
            self.cause = Some(Cause::Cancelled);
            self.escalation = Some((Instant::now() + TERM_GRACE, Step::AskInit));
            let _ = pidfd_send_signal(&self.running.slot.slot.init, Signal::TERM);
        }
    }

    /// Kills everything, through init.
    fn end(&mut self, cause: Cause) {
        if self.cause.is_none() {
            self.cause = Some(cause);
            self.escalate(Step::AskInit);
        }
    }

    /// Kills init, which shares the program's CPU limit and might be delayed by it.
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
            Step::KillInit => Some((now + KILL_TIMEOUT, Step::GiveUp)),
            Step::GiveUp => {
                if self.wait_for_end().is_err() {
                    let step = "end the sandbox".to_owned();
                    self.failure = Some(StepError { step, cause: Errno::TIMEDOUT });
                }
                self.over = true;
                None
            }
        };
        let init = &self.running.slot.slot.init;
        // Init may be gone already.
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
        let proxy_refusals = self.egress_proxy.take().map(RunningProxy::close).unwrap_or_default();
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
            violations: self.denied_calls.into_violations(),
            network,
            proxy_refusals,
            prepare_time: started - self.begun,
            run_time: now - started,
            at: now,
        })
    }
}
