//! How a program is ended: first asked, then killed, then killed with its sandbox.

use std::time::{Duration, Instant};

use sandbox_core::TimeKind;

/// Time between SIGTERM and SIGKILL for a cancelled program.
const TERM_GRACE: Duration = Duration::from_millis(500);
/// A killed sandbox is gone long before this.
pub(crate) const KILL_TIMEOUT: Duration = Duration::from_secs(10);

/// Why the supervisor ended a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    Time(TimeKind),
    Memory,
    Output,
    Cancelled,
}

/// A step to end a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Send SIGTERM to the program.
    Terminate,
    /// Kill the program and everything it started, through init or the agent.
    KillProgram,
    /// Kill everything, including init or the agent.
    KillSandbox,
    /// Nothing reports the end: check whether there is one.
    GiveUp,
}

impl Step {
    /// The step that follows, and how long this one has to succeed.
    fn next(self, kill_grace: Duration) -> Option<(Duration, Self)> {
        match self {
            Self::Terminate => Some((TERM_GRACE, Self::KillProgram)),
            Self::KillProgram => Some((kill_grace, Self::KillSandbox)),
            Self::KillSandbox => Some((KILL_TIMEOUT, Self::GiveUp)),
            Self::GiveUp => None,
        }
    }
}

/// Whether a program is being ended, and how far that is.
#[derive(Debug, Default)]
pub(super) struct Escalation {
    cause: Option<Cause>,
    /// The next step, and when to take it.
    next: Option<(Instant, Step)>,
}

impl Escalation {
    /// Begins with this step. Only the first cause counts.
    pub(super) fn begin(&mut self, cause: Cause, step: Step) {
        if self.cause.is_none() {
            self.cause = Some(cause);
            self.next = Some((Instant::now(), step));
        }
    }

    /// Why the program is being ended, if it is.
    pub(super) fn cause(&self) -> Option<Cause> {
        self.cause
    }

    /// When the next step is due.
    pub(super) fn next(&self) -> Option<Instant> {
        self.next.map(|(at, _)| at)
    }

    /// Returns the step to take now and its cause, if one is due.
    pub(super) fn take(&mut self, now: Instant, kill_grace: Duration) -> Option<(Step, Cause)> {
        let (cause, (_, step)) = self.cause.zip(self.next.filter(|(at, _)| *at <= now))?;
        self.next = step.next(kill_grace).map(|(grace, next)| (now + grace, next));
        Some((step, cause))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_step_follows_after_its_grace_period_and_the_first_cause_counts() {
        let mut escalation = Escalation::default();
        let kill_grace = Duration::from_millis(300);
        assert_eq!(escalation.take(Instant::now(), kill_grace), None);
        escalation.begin(Cause::Cancelled, Step::Terminate);
        escalation.begin(Cause::Memory, Step::KillSandbox);
        let mut now = Instant::now();
        for (step, grace) in [
            (Step::Terminate, TERM_GRACE),
            (Step::KillProgram, kill_grace),
            (Step::KillSandbox, KILL_TIMEOUT),
        ] {
            assert_eq!(escalation.take(now, kill_grace), Some((step, Cause::Cancelled)));
            assert_eq!(escalation.take(now, kill_grace), None);
            now += grace;
        }
        let last = escalation.take(now, kill_grace);
        assert_eq!(last, Some((Step::GiveUp, Cause::Cancelled)));
        assert_eq!(escalation.next(), None);
    }
}
