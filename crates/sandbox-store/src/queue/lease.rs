use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;

use super::{Job, QueueError};

/// The right of one worker to run a job, until it is finished, released or expired.
///
/// A lease that is dropped stays valid until it expires, as if its worker had crashed.
pub struct Lease {
    job: Job,
    worker: String,
    attempt: u32,
    duration: Option<Duration>,
    control: Arc<dyn LeaseControl>,
}

/// The operations of a queue on leases. A lease is identified by the id of its job and its attempt number; all
/// operations fail with [`QueueError::LeaseLost`] unless it is valid.
pub trait LeaseControl: Send + Sync {
    /// Restarts the time after which the lease expires.
    fn extend<'a>(&'a self, id: &'a str, attempt: u32) -> BoxFuture<'a, Result<(), QueueError>>;

    /// Removes the job.
    fn finish<'a>(&'a self, id: &'a str, attempt: u32) -> BoxFuture<'a, Result<(), QueueError>>;

    /// Puts the job back to the position where it was claimed.
    fn release<'a>(&'a self, id: &'a str, attempt: u32) -> BoxFuture<'a, Result<(), QueueError>>;
}

impl Lease {
    /// Creates a lease. For implementations of [`Queue`](super::Queue): the lease must be valid.
    pub fn new(
        job: Job,
        worker: String,
        attempt: u32,
        duration: Option<Duration>,
        control: Arc<dyn LeaseControl>,
    ) -> Self {
        Self { job, worker, attempt, duration, control }
    }

    /// The job.
    pub fn job(&self) -> &Job {
        &self.job
    }

    /// The worker that holds the lease.
    pub fn worker(&self) -> &str {
        &self.worker
    }

    /// The attempt number: a fencing token. It is larger than that of every earlier lease of the job, so that the
    /// result of a worker that has lost its lease can be told from that of the current one.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// The time after which the lease expires if it is not extended. None: it never does.
    pub fn duration(&self) -> Option<Duration> {
        self.duration
    }

    /// Restarts the time after which the lease expires.
    pub async fn extend(&self) -> Result<(), QueueError> {
        self.control.extend(&self.job.id, self.attempt).await
    }

    /// Removes the job from the queue: its execution has finished.
    pub async fn finish(self) -> Result<(), QueueError> {
        self.control.finish(&self.job.id, self.attempt).await
    }

    /// Hands the job back. It keeps its position, and can be claimed again.
    pub async fn release(self) -> Result<(), QueueError> {
        self.control.release(&self.job.id, self.attempt).await
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Lease")
            .field("job", &self.job)
            .field("worker", &self.worker)
            .field("attempt", &self.attempt)
            .finish_non_exhaustive()
    }
}
