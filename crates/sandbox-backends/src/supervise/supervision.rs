//! What the supervisor loop knows about a program, and what a backend reports to it.

use std::collections::BTreeMap;
use std::error::Error;
use std::time::{Duration, Instant};

use sandbox_core::{Observer, ProcessLimits, StreamKind, Violation};
use sandbox_protocol::notice::ExitNotice;

use super::CapturedOutput;
use super::escalation::{Cause, Escalation, Step};

type Failure = Box<dyn Error + Send + Sync>;

/// What was observed so far, and whether the program is being ended.
pub(crate) struct Supervision<'a> {
    pub(crate) observer: &'a mut dyn Observer,
    output: CapturedOutput,
    violations: BTreeMap<String, u64>,
    started: Option<Instant>,
    exit: Option<ExitNotice>,
    failure: Option<Failure>,
    pub(super) escalation: Escalation,
    is_over: bool,
}

/// What was observed of a program until everything it started had ended.
pub(crate) struct Ended {
    /// Limits that it was held to.
    pub(crate) limits: ProcessLimits,
    /// How it ended; `None` if it was killed with what would have reported that.
    pub(crate) exit: Option<ExitNotice>,
    /// Why the supervisor ended it, if it did.
    pub(crate) cause: Option<Cause>,
    pub(crate) output: CapturedOutput,
    /// System calls that were denied.
    pub(crate) violations: Vec<Violation>,
    /// When it started; when it ended, if it never did.
    pub(crate) started: Instant,
    /// How long it ran, by the supervisor's clock.
    pub(crate) run_time: Duration,
    /// When the last process was gone.
    pub(crate) at: Instant,
}

impl<'a> Supervision<'a> {
    pub(super) fn new(
        observer: &'a mut dyn Observer,
        max_output_bytes: usize,
        started: Option<Instant>,
    ) -> Self {
        Self {
            observer,
            output: CapturedOutput::new(max_output_bytes),
            violations: BTreeMap::new(),
            started,
            exit: None,
            failure: None,
            escalation: Escalation::default(),
            is_over: false,
        }
    }

    /// The program starts now.
    pub(crate) fn start(&mut self) {
        self.started = Some(Instant::now());
    }

    /// When the program started, if it has.
    pub(crate) fn started(&self) -> Option<Instant> {
        self.started
    }

    /// The program wrote this.
    pub(crate) fn output(&mut self, stream: StreamKind, bytes: &[u8]) {
        let taken = self.output.take(stream, bytes);
        if taken > 0 {
            self.observer.output(stream, &bytes[..taken]);
        }
        if self.output.is_over() {
            self.end(Cause::Output);
        }
    }

    /// The program made a system call of this name, which was denied.
    pub(crate) fn count_denied(&mut self, syscall: String) {
        *self.violations.entry(syscall).or_default() += 1;
    }

    /// The program ended, and so did everything it left behind.
    pub(crate) fn exit(&mut self, exit: ExitNotice) {
        self.exit = Some(exit);
        self.is_over = true;
    }

    /// Everything has ended.
    pub(crate) fn set_over(&mut self) {
        self.is_over = true;
    }

    pub(crate) fn is_over(&self) -> bool {
        self.is_over
    }

    /// Building the sandbox failed, which ends everything in it.
    pub(crate) fn fail(&mut self, failure: impl Into<Failure>) {
        // The first one caused the others.
        self.failure.get_or_insert_with(|| failure.into());
    }

    /// The program cannot run as it was asked for: kills it.
    pub(crate) fn abort(&mut self, failure: impl Into<Failure>) {
        self.fail(failure);
        self.end(Cause::Cancelled);
    }

    /// Kills the program and everything it started. No effect if it is already being ended.
    pub(crate) fn end(&mut self, cause: Cause) {
        self.escalation.begin(cause, Step::KillProgram);
    }

    /// Returns what was observed, or why the program could not run.
    pub(super) fn finish(self, limits: ProcessLimits) -> Result<Ended, Failure> {
        let at = Instant::now();
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        let started = self.started.unwrap_or(at);
        let violations = self.violations.into_iter();
        Ok(Ended {
            limits,
            exit: self.exit,
            cause: self.escalation.cause(),
            output: self.output,
            violations: violations.map(|(syscall, count)| Violation { syscall, count }).collect(),
            started,
            run_time: at - started,
            at,
        })
    }
}
