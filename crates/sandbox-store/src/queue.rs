//! The queue of what was accepted and not begun.

mod local;

use std::time::Duration;

use futures_util::future::BoxFuture;

pub use self::local::LocalQueue;

/// An execution that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// The execution's id.
    pub id: String,
    /// Whose it is.
    pub owner: Option<String>,
    /// More urgent ones have larger numbers.
    pub priority: i32,
    /// How much memory it may use, in bytes.
    pub memory: u64,
}

/// Why a queue did not take a job.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum QueueError {
    /// As many wait as may.
    #[error("the queue is full")]
    Full,
    /// It was closed.
    #[error("the queue is closed")]
    Closed,
    /// What keeps the queue failed.
    #[error("the queue failed")]
    Failed(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// The order in which accepted executions are begun. It may be lost: what is in it is in the store as
/// well, and a start fills it again from there.
///
/// More urgent jobs go first. Among equally urgent ones owners take turns, whatever number of jobs
/// each has waiting; the jobs of one owner go in the order in which they came.
pub trait Queue: Send + Sync {
    /// Puts a job at the end of its owner's line, unless the queue is full or closed.
    ///
    /// One that could never fit does not belong here: the queue would end up waiting for it.
    fn push(&self, job: Job) -> BoxFuture<'_, Result<(), QueueError>>;

    /// The same for a job that was accepted before, by a server that ended since: the bound is for
    /// new ones, and does not hold it off.
    fn restore(&self, job: Job) -> BoxFuture<'_, Result<(), QueueError>>;

    /// Waits for the next job that fits, and takes it. None when the queue is closed, even if jobs
    /// are left: they are in the store.
    ///
    /// Whether a job fits is a question of room that all share. It is no place for an owner's quota:
    /// others would end up waiting for one whom only his own jobs hold up. The question is asked with the
    /// queue locked, so the answer must be quick and must not use the queue. When the answer may have
    /// changed, call [`Queue::wake`].
    fn take<'a>(
        &'a self,
        fits: &'a (dyn Fn(&Job) -> bool + Send + Sync),
    ) -> BoxFuture<'a, Option<Job>>;

    /// A job that was taken is over, or waits in the store again. A queue that lends jobs to several
    /// servers gives one to another server if this is not said.
    fn done<'a>(&'a self, id: &'a str) -> BoxFuture<'a, ()>;

    /// Takes a job out, wherever it stands; false if it is not here.
    fn remove<'a>(&'a self, id: &'a str) -> BoxFuture<'a, bool>;

    /// How many wait.
    fn depth(&self) -> BoxFuture<'_, usize>;

    /// How long the one that has waited longest has.
    fn oldest(&self) -> BoxFuture<'_, Option<Duration>>;

    /// Takes no more jobs and gives none out.
    fn close(&self);

    /// Has everyone who waits for a job look again.
    fn wake(&self);
}
