//! What the supervisor loop does with a process of an instance.
//!
//! Limits of the process end it alone, through its shim. Limits of the instance end all processes,
//! by killing init: lack of memory, and a process that cannot be ended in time. A thread of the
//! instance enforces those that the kernel does not.

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use sandbox_core::{
    BackendError, CancelToken, Ending, Observer, ProcessLimits, ProcessOutcome, Protection,
    StageUsage,
};
use sandbox_linux::seccomp::Notifications;
use sandbox_linux::{Received, StepError};
use sandbox_protocol::notice::Notice;

use super::super::denied_calls::DeniedCalls;
use super::super::supervise::{LONG_RUNNING_AFTER, MAX_OUTPUT_BYTES, has_ended};
use super::NativeInstance;
use super::process::{Begun, NativeProcess, SHIM_GRACE};
use crate::error::failed;
use crate::process::{bytes_moved_by, process_id};
use crate::process_tree::cpu_time_below;
use crate::supervise::{
    Cause, Counters, Ended, KillReason, Supervised, Supervision, Terms, supervise,
};

/// A process that is supervised.
struct ServedProgram<'w, 'a> {
    process: &'w NativeProcess<'w, 'a>,
    begun: Begun<'a>,
    denied_calls: DeniedCalls,
    /// When to close descriptors that are not needed while the program runs.
    descriptor_release: Option<Instant>,
    /// Whether its end was reported, and with it that of everything that it started.
    is_reported: bool,
}

/// Supervises until the program and everything that it started have ended.
pub(super) fn watch<'a>(
    process: &NativeProcess<'_, 'a>,
    mut begun: Begun<'a>,
    observer: &mut dyn Observer,
    cancel: &CancelToken,
) -> Result<ProcessOutcome, BackendError> {
    let instance = process.instance();
    let terms = Terms {
        limits: limits_in_force(process),
        cpus: instance.plan.sandbox.limits.cpus(),
        usage_interval: None,
        started: None,
        oom: begun.oom.take(),
    };
    let mut program = ServedProgram {
        process,
        begun,
        denied_calls: DeniedCalls::new(None),
        descriptor_release: None,
        is_reported: false,
    };
    let ended = instance.host.wait(|| supervise(&mut program, terms, observer, cancel));
    if !program.is_reported {
        // Nobody knows what is left of it.
        instance.end(Cause::Cancelled);
    }
    let outcome = ended.and_then(|ended| program.conclude(ended));
    process.shim.release();
    outcome
}

fn limits_in_force(process: &NativeProcess<'_, '_>) -> ProcessLimits {
    let has = |protection| process.instance().host.has(protection);
    let ProcessLimits { wall_time, cpu_time, output_bytes } = process.limits;
    ProcessLimits {
        wall_time: wall_time.filter(|_| has(Protection::WallTime)),
        cpu_time: cpu_time.filter(|_| has(Protection::CpuTime)),
        output_bytes: if has(Protection::Output) { output_bytes } else { MAX_OUTPUT_BYTES },
    }
}

/// Descriptors of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Output,
    Notice,
    DeniedCall,
}

impl Supervised for ServedProgram<'_, '_> {
    type Source = Source;

    const START: &'static str = "run a process";
    const KILL_GRACE: Duration = SHIM_GRACE;
    const IS_SHARED: bool = true;

    fn sources(&self) -> impl Iterator<Item = (Source, BorrowedFd<'_>)> {
        let output = self.begun.output.watched().map(|stream| (Source::Output, stream));
        let denied = self.denied_calls.listener().map(|listener| (Source::DeniedCall, listener));
        output.chain([(Source::Notice, self.process.shim.socket())]).chain(denied)
    }

    fn handle(
        &mut self,
        source: Source,
        supervision: &mut Supervision<'_>,
    ) -> Result<(), BackendError> {
        match source {
            Source::Output => self.begun.output.read(supervision),
            Source::Notice => self.recv_notice(supervision)?,
            Source::DeniedCall => {
                self.answer_denied_call(supervision);
            }
        }
        Ok(())
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.denied_calls.next_answer().into_iter().chain(self.descriptor_release).min()
    }

    fn on_time(&mut self, now: Instant, _: &mut Supervision<'_>) -> Result<(), BackendError> {
        self.denied_calls.resume(now);
        if self.descriptor_release.is_some_and(|at| at <= now) {
            self.descriptor_release = None;
            self.begun.sandbox.slot.release_descriptors();
        }
        Ok(())
    }

    fn drain(&mut self, supervision: &mut Supervision<'_>) {
        self.begun.output.drain(supervision);
        while self.answer_denied_call(supervision) {}
    }

    fn terminate(&mut self) {
        let _ = self.process.shim.signal(Signal::TERM);
    }

    fn kill_program(&mut self) {
        // It may have ended.
        let _ = self.process.shim.end();
    }

    fn kill_sandbox(&mut self, cause: Cause) {
        self.instance().end(cause);
    }

    fn is_gone(&self) -> bool {
        has_ended(self.instance().init.process(), Duration::ZERO).unwrap_or(false)
    }

    fn counters(&self) -> Counters<'_> {
        Counters {
            cgroup: self.begun.sandbox.slot.slot.cgroup.as_ref(),
            before: &self.begun.before,
            own_processes: None,
            own_memory: 0,
            agent: None,
            init: None,
        }
    }

    fn cpu_time(&self) -> Duration {
        let counters = self.counters();
        if self.is_alone() {
            return counters.cpu_time();
        }
        let shim = process_id(self.process.shim.process());
        shim.map_or(Duration::ZERO, cpu_time_below)
    }
}

impl<'w, 'a> ServedProgram<'w, 'a> {
    fn instance(&self) -> &'w NativeInstance<'a> {
        self.process.instance()
    }

    /// Answers one denied call; false if there is none.
    fn answer_denied_call(&mut self, supervision: &mut Supervision<'_>) -> bool {
        let Some(call) = self.denied_calls.receive() else { return false };
        self.denied_calls.refuse(&call, self.process.instance().host, supervision);
        true
    }

    fn recv_notice(&mut self, supervision: &mut Supervision<'_>) -> Result<(), BackendError> {
        let received = self.process.shim.try_receive();
        match received.map_err(|error| failed("receive from a process", error))? {
            // The shim was killed, alone or with the instance.
            Received::Closed => supervision.set_over(),
            Received::Notice(Notice::Starting, descriptors) => {
                let listener = descriptors.into_iter().next();
                let listener = listener.and_then(|listener| Notifications::new(listener).ok());
                self.denied_calls.listen(listener);
                supervision.start();
                self.descriptor_release = Some(Instant::now() + LONG_RUNNING_AFTER);
            }
            Received::Notice(Notice::Failed(failure), _) => {
                supervision.fail(StepError::from(failure));
            }
            Received::Notice(Notice::Exited(exit), _) => {
                self.is_reported = true;
                supervision.exit(exit);
            }
            Received::Nothing | Received::Notice(..) => {}
        }
        Ok(())
    }

    /// Whether no other process has run in the instance since the start of this one.
    fn is_alone(&self) -> bool {
        let instance = self.instance();
        let is_counted = instance.host.enforces.cpu_accounting;
        is_counted && self.begun.number.is_some_and(|number| instance.is_last(number))
    }

    /// How the process ended, and what it used.
    fn conclude(&self, mut ended: Ended) -> Result<ProcessOutcome, BackendError> {
        let oom_kills = self.counters().cgroup.oom_kills();
        let oom_kills =
            oom_kills.map_err(|error| failed("read the OOM counter of the sandbox", error))?;
        if oom_kills > 0 {
            // Of all processes together. The report of a process can arrive before the event.
            self.instance().end(Cause::Memory);
        }
        // What ended the instance ended this process too.
        if let (None, Some(KillReason::Cause(cause))) =
            (&ended.exit, self.instance().init.kill_reason())
        {
            ended.cause.get_or_insert(cause);
        }
        let usage = self.usage(&ended)?;
        let ending = ended.ending(oom_kills, &usage);
        let ending: Ending =
            ending.ok_or_else(|| failed("watch a process", "it ended without an exit status"))?;
        Ok(ProcessOutcome {
            ending,
            usage,
            stdout: ended.output.stdout,
            stderr: ended.output.stderr,
            violations: ended.violations,
        })
    }

    /// What was reaped of the process, and the cgroup's total of CPU time where it was alone. The
    /// peak of memory is that of its largest process; the peak number of processes is not known.
    fn usage(&self, ended: &Ended) -> Result<StageUsage, BackendError> {
        let notice = ended.exit.unwrap_or_default();
        let mut cpu = (
            Duration::from_micros(notice.user_micros),
            Duration::from_micros(notice.system_micros),
        );
        if self.is_alone() {
            let counters = self.counters();
            let after = counters.cgroup.usage();
            let after = after.map_err(|error| failed("read what the sandbox used", error))?;
            let usage = ended.usage(&counters, &after);
            cpu = (usage.cpu_user, usage.cpu_system);
        }
        // The shim has inherited the counters of those that it reaped.
        let moved = process_id(self.process.shim.process()).and_then(bytes_moved_by);
        let (io_read_bytes, io_write_bytes) = moved.unwrap_or_default();
        Ok(StageUsage {
            wall_time: ended.wall_time(),
            cpu_user: cpu.0,
            cpu_system: cpu.1,
            memory_peak_kb: notice.max_rss_kib,
            processes_peak: 0,
            io_read_bytes,
            io_write_bytes,
        })
    }
}
