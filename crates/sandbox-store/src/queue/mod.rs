//! The queue of executions that were accepted and have not started.

mod local;

use std::time::Duration;

use futures_util::future::BoxFuture;

pub use self::local::LocalQueue;

/// A waiting execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// The id of the execution.
    pub id: String,
    /// The owner of the execution.
    pub owner: Option<String>,
    /// The priority; larger numbers are more urgent.
    pub priority: i32,
    /// The memory limit of the execution, in bytes.
    pub memory: u64,
}

/// Whether a job can start now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fit {
    /// It can start.
    Now,
    /// There is not enough shared capacity, such as memory. Others may overtake the job, but not for ever.
    NoCapacity,
    /// Its owner has reached a limit of its own. All jobs of the owner are passed over.
    OwnerAtLimit,
}

/// Why a queue did not accept a job.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum QueueError {
    /// The queue has reached its capacity.
    #[error("the queue is full")]
    Full,
    /// The queue was closed.
    #[error("the queue is closed")]
    Closed,
    /// The backend of the queue failed.
    #[error("queue operation failed")]
    Failed(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// The order in which accepted executions start. Its content may be lost: every job is in the store as well,
/// and the server refills the queue from there when it starts.
///
/// Jobs of higher priority go first. Within a priority, owners take turns, however many jobs each has; the jobs
/// of one owner go in the order of their arrival.
pub trait Queue: Send + Sync {
    /// Adds a job behind the others of its owner, unless the queue is full or closed.
    ///
    /// Do not push a job that can never fit: the queue would end up waiting for it.
    fn push(&self, job: Job) -> BoxFuture<'_, Result<(), QueueError>>;

    /// Adds a job that was accepted before, for instance by a server that has crashed. It ignores the capacity,
    /// which is a bound on new jobs.
    fn restore(&self, job: Job) -> BoxFuture<'_, Result<(), QueueError>>;

    /// Waits for the next job that fits, and claims it. Returns none when the queue is closed, even if jobs
    /// are left: they are in the store.
    ///
    /// The queue is locked while it calls `fit`, so `fit` must be quick and must not use the queue. When its answer
    /// may have changed, call [`Queue::wake`].
    fn claim<'a>(
        &'a self,
        fit: &'a (dyn Fn(&Job) -> Fit + Send + Sync),
    ) -> BoxFuture<'a, Option<Job>>;

    /// Releases a claimed job that has finished or is `queued` in the store again. A queue shared by several
    /// servers hands a job that is never released to another server.
    fn release<'a>(&'a self, id: &'a str) -> BoxFuture<'a, ()>;

    /// Removes a waiting job. Returns false if it is not in the queue.
    fn remove<'a>(&'a self, id: &'a str) -> BoxFuture<'a, bool>;

    /// Returns the number of waiting jobs.
    fn depth(&self) -> BoxFuture<'_, usize>;

    /// Returns how long the oldest job has been waiting.
    fn oldest_age(&self) -> BoxFuture<'_, Option<Duration>>;

    /// Closes the queue: no job is accepted or handed out any more.
    fn close(&self);

    /// Makes everyone who waits in [`Queue::claim`] check again.
    fn wake(&self);
}
