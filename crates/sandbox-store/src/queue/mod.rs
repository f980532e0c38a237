//! The queue of executions that were accepted and have not started.

mod capacity;
mod lease;
mod local;

use std::time::Duration;

use futures_util::future::BoxFuture;

pub use self::capacity::{Capacity, Fit, Resources};
pub use self::lease::{Lease, LeaseControl};
pub use self::local::LocalQueue;

/// A waiting execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// The id of the execution. No other job has it.
    pub id: String,
    /// The owner of the execution.
    pub owner: Option<String>,
    /// The priority; larger numbers are more urgent.
    pub priority: i32,
    /// The memory limit of the execution, in bytes.
    pub memory: u64,
    /// The number of earlier attempts.
    pub attempts: u32,
}

/// Why a queue operation failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum QueueError {
    /// The queue has reached its capacity.
    #[error("the queue is full")]
    Full,
    /// The queue was closed.
    #[error("the queue is closed")]
    Closed,
    /// The lease has expired, or the job was finished or released before.
    #[error("the lease is lost")]
    LeaseLost,
    /// The backend of the queue failed.
    #[error("queue operation failed")]
    Failed(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// The order in which accepted executions start. Its content may be lost: every job is in the store as well,
/// and the server refills the queue from there when it starts.
///
/// Jobs of higher priority go first. Within a priority, owners take turns, however many jobs each has; the jobs
/// of one owner go in the order of their arrival.
///
/// Workers claim jobs. A claimed job belongs to one worker until its [`Lease`] ends: by [`Lease::finish`], by
/// [`Lease::release`], or by expiring, after which the job can be claimed again.
pub trait Queue: Send + Sync {
    /// Adds a job behind the others of its owner, unless the queue is full or closed.
    ///
    /// Do not push a job that can never fit: the queue would end up waiting for it.
    fn push(&self, job: Job) -> BoxFuture<'_, Result<(), QueueError>>;

    /// Adds a job that was accepted before, for instance by a server that has crashed. It ignores the capacity,
    /// which is a bound on new jobs.
    fn restore(&self, job: Job) -> BoxFuture<'_, Result<(), QueueError>>;

    /// Waits for the next job that fits into the capacity of this worker, and leases it to the worker. Returns none
    /// when the queue is closed, even if jobs are left: they are in the store.
    ///
    /// `capacity` returns the free capacity. It is called again for each check; after it has grown, call
    /// [`Queue::wake`].
    fn claim<'a>(
        &'a self,
        worker: &'a str,
        capacity: &'a (dyn Fn() -> Capacity + Send + Sync),
    ) -> BoxFuture<'a, Option<Lease>>;

    /// Removes a waiting job. Returns false if it is not in the queue, or leased.
    fn remove<'a>(&'a self, id: &'a str) -> BoxFuture<'a, bool>;

    /// Returns the number of waiting jobs.
    fn depth(&self) -> BoxFuture<'_, usize>;

    /// Returns how long the oldest job has been waiting.
    fn oldest_age(&self) -> BoxFuture<'_, Option<Duration>>;

    /// Closes the queue: no job is accepted or handed out any more. Leases stay valid.
    fn close(&self);

    /// Makes everyone who waits in [`Queue::claim`] check again.
    fn wake(&self);
}
