use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, ready};
use sandbox_store::{Capacity, Job, Lease, LeaseControl, QueueError};

use super::*;

/// A queue that takes every lease away as soon as its worker extends it.
struct Revoking(LocalQueue);

struct Revoked;

impl Queue for Revoking {
    fn push(&self, job: Job) -> BoxFuture<'_, Result<(), QueueError>> {
        self.0.push(job)
    }

    fn restore(&self, job: Job) -> BoxFuture<'_, Result<(), QueueError>> {
        self.0.restore(job)
    }

    fn claim<'a>(
        &'a self,
        worker: &'a str,
        capacity: &'a (dyn Fn() -> Capacity + Send + Sync),
    ) -> BoxFuture<'a, Option<Lease>> {
        let revoked = |lease: Lease| {
            let (job, attempt) = (lease.job().clone(), lease.attempt());
            let duration = Some(Duration::from_millis(1));
            Lease::new(job, lease.worker().to_owned(), attempt, duration, Arc::new(Revoked))
        };
        self.0.claim(worker, capacity).map(move |lease| lease.map(revoked)).boxed()
    }

    fn remove<'a>(&'a self, id: &'a str) -> BoxFuture<'a, bool> {
        self.0.remove(id)
    }

    fn depth(&self) -> BoxFuture<'_, usize> {
        self.0.depth()
    }

    fn oldest_age(&self) -> BoxFuture<'_, Option<Duration>> {
        self.0.oldest_age()
    }

    fn close(&self) {
        self.0.close();
    }

    fn wake(&self) {
        self.0.wake();
    }
}

impl LeaseControl for Revoked {
    fn extend<'a>(&'a self, _: &'a str, _: u32) -> BoxFuture<'a, Result<(), QueueError>> {
        ready(Err(QueueError::LeaseLost)).boxed()
    }

    fn finish<'a>(&'a self, _: &'a str, _: u32) -> BoxFuture<'a, Result<(), QueueError>> {
        ready(Err(QueueError::LeaseLost)).boxed()
    }

    fn release<'a>(&'a self, _: &'a str, _: u32) -> BoxFuture<'a, Result<(), QueueError>> {
        ready(Err(QueueError::LeaseLost)).boxed()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_execution_keeps_its_lease() {
    let lease_duration = Duration::from_secs(1);
    let queue = LocalQueue::with_lease_duration(10, Some(lease_duration));
    let bench = Bench::with_queue(limits(), queue).await;
    let ticket = bench.accept("sleep 2.5; echo once").await;
    let report = bench.report(&ticket.id).await;
    assert_eq!((&report["status"], &report["stdout"]), (&json!("completed"), &json!("once\n")));
    let record = bench.store.execution(&ticket.id).await.unwrap().unwrap();
    assert_eq!(record.attempts, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_lost_its_lease_stores_no_result() {
    let bench = Bench::with_queue(limits(), Revoking(LocalQueue::new(10))).await;
    let ticket = bench.accept("echo begun; sleep 50").await;
    let report = bench.report(&ticket.id).await;
    assert_eq!(report["exit_code"], Value::Null, "{report}");
    let record = bench.store.execution(&ticket.id).await.unwrap().unwrap();
    assert!(record.report.is_none() && record.finished_at.is_none());
}
