//! The supervisor loop of one program, the same for every backend: limits, cancellation, the end.
//!
//! All limits are enforced from outside: a program can stop itself, close its streams, ignore
//! signals or hide in child processes, and none of that affects this loop's clock or the kernel's
//! counters.
//!
//! A backend implements [`Supervised`]: which descriptors to wait for and what they mean, how the
//! program is killed, and which counters show what it used. It reports to a [`Supervision`].
//! [`supervise`] returns what was observed, and `verdict` determines the outcome.

mod clocks;
mod escalation;
mod held_objects;
mod instance_limits;
mod lock_limit;
mod monitors;
mod network_memory;
mod output;
mod supervised;
mod supervision;
mod usage;
mod verdict;

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;
use sandbox_core::{BackendError, CancelToken, Observer, ProcessLimits, TimeKind};
use sandbox_linux::cgroup::OomWatch;

use crate::error::failed;
use clocks::Clocks;
use escalation::Step;
use monitors::Monitors;

pub(crate) use clocks::BUILD_TIMEOUT;
pub(crate) use escalation::{Cause, KILL_TIMEOUT};
pub(crate) use instance_limits::{InstanceInit, InstanceLimits, KillReason, refuse_unenforced};
pub(crate) use lock_limit::LockLimit;
pub(crate) use network_memory::{NetworkMemory, UNACCEPTED_BYTES, UNACCEPTED_BYTES_BY_DEFAULT};
use output::CapturedOutput;
pub(crate) use supervised::Supervised;
pub(crate) use supervision::{Ended, Supervision};
pub(crate) use usage::Counters;
pub(crate) use verdict::without_program;

/// What a program is held to.
pub(crate) struct Terms {
    pub(crate) limits: ProcessLimits,
    /// CPUs that it can use at once.
    pub(crate) cpus: f64,
    /// How often to sample its usage.
    pub(crate) usage_interval: Option<Duration>,
    /// When it started, if it has.
    pub(crate) started: Option<Instant>,
    /// Notifications of OOM kills among its processes.
    pub(crate) oom: Option<OomWatch>,
}

/// Supervises until the program and everything it started have ended.
pub(crate) fn supervise(
    program: &mut impl Supervised,
    terms: Terms,
    observer: &mut dyn Observer,
    cancel: &CancelToken,
) -> Result<Ended, BackendError> {
    let cancelled = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
        .map_err(|error| failed("make the eventfd for cancellation", error))?;
    let cancelled = Arc::new(cancelled);
    let waker = Arc::clone(&cancelled);
    let _registration = cancel.on_cancel(move || {
        // The counter cannot overflow: it is written once.
        let _ = rustix::io::write(&waker, &1_u64.to_ne_bytes());
    });
    let Terms { limits, cpus, .. } = terms;
    let clocks = Clocks::new(limits, cpus, Instant::now());
    let supervision = Supervision::new(observer, limits.output_bytes, terms.started);
    Supervisor { program, supervision, terms, clocks, monitors: None, cancelled }.run()
}

struct Supervisor<'a, P: Supervised> {
    program: &'a mut P,
    supervision: Supervision<'a>,
    terms: Terms,
    clocks: Clocks,
    /// `None` until the program starts.
    monitors: Option<Monitors>,
    cancelled: Arc<OwnedFd>,
}

/// An event of the loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event<S> {
    Program(S),
    Cancel,
    Memory,
    Locks,
}

impl<P: Supervised> Supervisor<'_, P> {
    const MEMORY_STEP: Step = if P::IS_SHARED { Step::KillSandbox } else { Step::KillProgram };

    fn run(mut self) -> Result<Ended, BackendError> {
        self.start_clocks();
        while !self.supervision.is_over() {
            for event in self.wait()? {
                self.handle(event)?;
            }
            self.start_clocks();
            self.check_clocks()?;
        }
        self.program.drain(&mut self.supervision);
        self.supervision.finish(self.terms.limits).map_err(|failure| failed(P::START, failure))
    }

    /// Starts the clocks of the limits, if the program has just started.
    fn start_clocks(&mut self) {
        if let (Some(started), None) = (self.supervision.started(), &self.monitors) {
            self.clocks.start(started);
            self.monitors = Some(Monitors::start(self.program, self.terms.usage_interval, started));
        }
    }

    /// Waits for the next event or deadline; returns the events.
    fn wait(&self) -> Result<Vec<Event<P::Source>>, BackendError> {
        let mut events = Vec::with_capacity(8);
        let mut watched = Vec::with_capacity(8);
        let mut listen = |event, fd, flags| {
            events.push(event);
            watched.push(PollFd::from_borrowed_fd(fd, flags));
        };
        for (source, fd) in self.program.sources() {
            listen(Event::Program(source), fd, PollFlags::IN);
        }
        if self.supervision.escalation.cause().is_none() {
            listen(Event::Cancel, self.cancelled.as_fd(), PollFlags::IN);
            if let Some(oom) = &self.terms.oom {
                listen(Event::Memory, oom.fd(), oom.events());
            }
            if let Some(alarm) = self.monitors.as_ref().and_then(Monitors::lock_alarm) {
                listen(Event::Locks, alarm, PollFlags::IN);
            }
        }
        let left = self.next_deadline().saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(left).ok();
        match poll(&mut watched, timeout.as_ref()) {
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(Vec::new()),
            Err(error) => return Err(failed("wait for the sandbox", error)),
        }
        let ready = watched.iter().map(|fd| !fd.revents().is_empty());
        Ok(events
            .into_iter()
            .zip(ready)
            .filter_map(|(event, ready)| ready.then_some(event))
            .collect())
    }

    fn next_deadline(&self) -> Instant {
        let escalation = &self.supervision.escalation;
        let monitors = self.monitors.as_ref();
        // While a program is being ended, no limit applies.
        let is_running = escalation.cause().is_none();
        let limits = self.clocks.next().chain(monitors.and_then(Monitors::next_check));
        let always = [
            escalation.next(),
            monitors.and_then(Monitors::next_sample),
            self.program.next_deadline(),
        ];
        let deadlines = limits.filter(|_| is_running).chain(always.into_iter().flatten());
        deadlines.min().unwrap_or_else(|| Instant::now() + BUILD_TIMEOUT)
    }

    fn handle(&mut self, event: Event<P::Source>) -> Result<(), BackendError> {
        let escalation = &mut self.supervision.escalation;
        match event {
            Event::Program(source) => self.program.handle(source, &mut self.supervision)?,
            Event::Cancel => escalation.begin(Cause::Cancelled, Step::Terminate),
            Event::Memory => {
                if self.terms.oom.as_mut().is_some_and(OomWatch::triggered) {
                    escalation.begin(Cause::Memory, Self::MEMORY_STEP);
                }
            }
            Event::Locks => escalation.begin(Cause::Memory, Step::KillSandbox),
        }
        Ok(())
    }

    fn check_clocks(&mut self) -> Result<(), BackendError> {
        let now = Instant::now();
        self.program.on_time(now, &mut self.supervision)?;
        let sample = self.monitors.as_mut().and_then(|all| all.sample(now, self.program));
        if let Some(sample) = sample {
            self.supervision.observer.usage(sample);
        }
        if self.supervision.escalation.cause().is_none() {
            self.check_limits(now);
        }
        // Last, so that what was found above takes effect now.
        let step = self.supervision.escalation.take(Instant::now(), P::KILL_GRACE);
        if let Some((step, cause)) = step {
            self.take_step(step, cause);
        }
        Ok(())
    }

    fn check_limits(&mut self, now: Instant) {
        let Self { program, supervision, clocks, .. } = self;
        let program: &P = program;
        if let Some(monitors) = &mut self.monitors
            && monitors.exceeds_network_memory(now)
        {
            return supervision.escalation.begin(Cause::Memory, Self::MEMORY_STEP);
        }
        if clocks.is_late(now) {
            if supervision.started().is_some() {
                return supervision.end(Cause::Time(TimeKind::Wall));
            }
            let seconds = BUILD_TIMEOUT.as_secs();
            return supervision.abort(format!("the program did not start within {seconds} s"));
        }
        if let Some(monitors) = &mut self.monitors
            && let Err(error) = monitors.limit_locks(now, program)
        {
            return supervision.abort(failed("count the file locks of the sandbox", error));
        }
        if clocks.exceeds_cpu_time(now, || program.cpu_time()) {
            supervision.end(Cause::Time(TimeKind::Cpu));
        }
    }

    fn take_step(&mut self, step: Step, cause: Cause) {
        match step {
            Step::Terminate => self.program.terminate(),
            Step::KillProgram => self.program.kill_program(),
            Step::KillSandbox => self.program.kill_sandbox(cause),
            Step::GiveUp => {
                if !self.program.is_gone() {
                    let seconds = KILL_TIMEOUT.as_secs();
                    self.supervision.fail(format!("the sandbox did not end within {seconds} s"));
                }
                self.supervision.set_over();
            }
        }
    }
}
