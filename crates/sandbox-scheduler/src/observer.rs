//! What the scheduler reports to metrics, the log and traces.

use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use sandbox::{EventKind, Report};

/// Observes the executions of a scheduler.
pub trait Observer: Send + Sync {
    /// Starts to observe an execution. Called in the task that submits it, so that the observer can take the
    /// context of the client's request from the task.
    fn observe(&self) -> Box<dyn ExecutionObserver>;

    /// An execution in this language was accepted.
    fn accepted(&self, language: &str);

    /// An execution of an earlier run of the server was ended without running.
    fn abandoned(&self, owner: Option<&str>, report: &Report);
}

/// Observes one execution.
pub trait ExecutionObserver: Send + Sync {
    /// An event of the execution.
    fn event(&self, event: &EventKind);

    /// The execution finished. Called once, unless it is left to the next run of the server.
    fn finished(&self, completion: &Completion<'_>);
}

/// A finished execution.
#[derive(Clone, Copy, Debug)]
pub struct Completion<'a> {
    /// The id of the execution.
    pub id: &'a str,
    /// The id of the owner's key.
    pub owner: Option<&'a str>,
    /// The report.
    pub report: &'a Report,
    /// When it was accepted.
    pub created_at: DateTime<Utc>,
    /// When it was accepted, on the monotonic clock.
    pub accepted: Instant,
    /// How long it waited in the queue.
    pub queued: Duration,
}
