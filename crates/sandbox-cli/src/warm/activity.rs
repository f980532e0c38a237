use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What a helper has done and is doing, and how long it will stay.
#[derive(Debug)]
pub(super) struct Activity {
    state: Mutex<State>,
    nothing_runs: Condvar,
}

#[derive(Clone, Debug)]
struct State {
    executions: u64,
    running: usize,
    /// Connections whose question is not known or answered yet, and those that are running.
    visitors: usize,
    /// When the last one left.
    idle_since: Instant,
    idle: Duration,
    leaving: bool,
}

/// A connection that counts as attended to until this is dropped.
#[derive(Debug)]
pub(super) struct Visit<'a> {
    activity: &'a Activity,
}

/// An execution that counts as running until this is dropped.
#[derive(Debug)]
pub(super) struct Running<'a> {
    activity: &'a Activity,
}

/// A moment's figures.
#[derive(Clone, Copy, Debug)]
pub(super) struct Figures {
    pub(super) executions: u64,
    pub(super) running: usize,
    pub(super) idle: Duration,
}

impl Activity {
    pub(super) fn new(idle: Duration) -> Self {
        let state = State {
            executions: 0,
            running: 0,
            visitors: 0,
            idle_since: Instant::now(),
            idle,
            leaving: false,
        };
        Self { state: Mutex::new(state), nothing_runs: Condvar::new() }
    }

    /// Somebody has come, and is shown in by [`Self::visit`].
    pub(super) fn arrive(&self) {
        self.lock().visitors += 1;
    }

    /// The visit of somebody who has come.
    pub(super) fn visit(&self) -> Visit<'_> {
        Visit { activity: self }
    }

    /// Counts one more, unless no more are taken.
    pub(super) fn begin(&self, idle: Duration) -> Option<Running<'_>> {
        let mut state = self.lock();
        if state.leaving {
            return None;
        }
        state.running += 1;
        state.executions += 1;
        // Whoever asked last says how long.
        state.idle = idle;
        Some(Running { activity: self })
    }

    /// Takes no more from now on. Returns how many are running.
    pub(super) fn leave(&self) -> usize {
        let mut state = self.lock();
        state.leaving = true;
        state.running
    }

    /// The same, if nothing runs and nothing has for long enough.
    pub(super) fn leave_if_idle(&self) -> bool {
        let mut state = self.lock();
        state.leaving |= state.visitors == 0 && state.idle_since.elapsed() >= state.idle;
        state.leaving
    }

    /// How long it will stay if nothing happens; none if it is leaving.
    pub(super) fn left(&self) -> Option<Duration> {
        let state = self.lock();
        (!state.leaving).then(|| state.left())
    }

    pub(super) fn figures(&self) -> Figures {
        let state = self.lock();
        Figures { executions: state.executions, running: state.running, idle: state.idle }
    }

    pub(super) fn wait_until_nothing_runs(&self) {
        let state = self.lock();
        let waited = self.nothing_runs.wait_while(state, |state| state.running > 0);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing that could panic is done while it is held.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn left(&self) -> Duration {
        if self.visitors > 0 {
            // Its end is told to whoever waits.
            Duration::MAX
        } else {
            self.idle.saturating_sub(self.idle_since.elapsed())
        }
    }
}

impl Drop for Visit<'_> {
    fn drop(&mut self) {
        let mut state = self.activity.lock();
        state.visitors -= 1;
        state.idle_since = Instant::now();
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let mut state = self.activity.lock();
        state.running -= 1;
        if state.running == 0 {
            self.activity.nothing_runs.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_stays_while_somebody_is_there_and_for_a_while_after() {
        let activity = Activity::new(Duration::ZERO);
        let hour = Duration::from_hours(1);
        activity.arrive();
        assert!(!activity.leave_if_idle(), "it does not know yet what is wanted");
        let visit = activity.visit();
        let running = activity.begin(hour).unwrap();
        assert_eq!(activity.left(), Some(Duration::MAX));
        drop(running);
        drop(visit);
        assert!(activity.left().is_some_and(|left| left < hour && !left.is_zero()));
        activity.arrive();
        let visit = activity.visit();
        drop(activity.begin(Duration::ZERO));
        assert!(!activity.leave_if_idle());
        drop(visit);
        assert!(activity.leave_if_idle());
        assert_eq!(activity.left(), None);
        assert!(activity.begin(hour).is_none(), "one more was taken");
        assert_eq!(activity.figures().executions, 2);
    }

    #[test]
    fn asked_to_leave_it_takes_no_more_and_tells_what_runs() {
        let activity = Activity::new(Duration::from_hours(1));
        activity.arrive();
        let _visit = activity.visit();
        let _running = activity.begin(Duration::ZERO);
        assert_eq!(activity.leave(), 1);
        assert!(activity.begin(Duration::ZERO).is_none());
    }
}
