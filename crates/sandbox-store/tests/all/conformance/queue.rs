//! Conformance tests for every implementation of the trait `Queue`. `queue_conformance!(backend)` runs them, where
//! `backend` is a [`Backend`].

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use sandbox_store::{Capacity, Job, Lease, Queue, QueueError, Resources};
use tokio::time::timeout;

/// How to test an implementation.
#[derive(Clone, Copy)]
pub(crate) struct Backend {
    /// Creates an empty queue with this capacity and this lease duration.
    pub(crate) create: fn(usize, Option<Duration>) -> Arc<dyn Queue>,
    /// A claim that takes longer finds nothing.
    pub(crate) claim_timeout: Duration,
}

macro_rules! queue_conformance {
    ($backend:path) => {
        queue_conformance! { $backend;
            jobs_of_one_owner_go_in_order_of_arrival,
            higher_priority_goes_first,
            owners_take_turns_however_many_jobs_they_have,
            a_full_queue_rejects_new_jobs_but_not_restored_ones,
            jobs_of_other_owners_overtake_a_job_that_does_not_fit,
            a_job_that_does_not_fit_is_not_overtaken_forever,
            an_owner_at_its_limit_delays_no_other_owner,
            a_job_without_an_owner_has_no_limit_of_its_own,
            jobs_continue_when_the_job_they_waited_for_is_removed,
            a_job_can_be_removed_from_any_position,
            the_age_of_the_oldest_job_is_reported,
            concurrent_claims_get_each_job_once,
            wake_makes_a_waiting_claim_check_again,
            a_closed_queue_neither_accepts_nor_hands_out_jobs,
            a_claimed_job_belongs_to_one_worker,
            each_claim_of_a_job_has_a_larger_attempt_number,
            a_released_job_keeps_its_position,
            a_finished_job_can_be_added_again,
            an_expired_lease_passes_to_another_worker,
            an_extended_lease_does_not_expire,
        }
    };
    ($backend:path; $($check:ident),* $(,)?) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $check() {
                $crate::conformance::queue::$check($backend).await;
            }
        )*
    };
}
pub(crate) use queue_conformance;

/// A queue under test.
struct Bench {
    queue: Arc<dyn Queue>,
    claim_timeout: Duration,
}

impl Backend {
    /// A queue whose leases do not expire.
    fn queue(self, capacity: usize) -> Bench {
        Bench { queue: (self.create)(capacity, None), claim_timeout: self.claim_timeout }
    }

    fn queue_with_lease_duration(self, duration: Duration) -> Bench {
        let queue = (self.create)(10, Some(duration));
        Bench { queue, claim_timeout: self.claim_timeout }
    }
}

impl Bench {
    async fn push(&self, job: Job) {
        self.queue.push(job).await.unwrap();
    }

    async fn push_all<const N: usize>(&self, jobs: [Job; N]) {
        for job in jobs {
            self.push(job).await;
        }
    }

    async fn try_lease(&self, worker: &str, capacity: &Capacity) -> Option<Lease> {
        let capacity = || capacity.clone();
        timeout(self.claim_timeout, self.queue.claim(worker, &capacity)).await.ok().flatten()
    }

    /// Claims and finishes the next job that fits, if there is one, and returns its id.
    async fn try_claim(&self, capacity: &Capacity) -> Option<String> {
        let lease = self.try_lease("worker", capacity).await?;
        let id = lease.job().id.clone();
        lease.finish().await.unwrap();
        Some(id)
    }

    /// Claims jobs that fit until there are no more, and returns their ids in order.
    async fn claim_all(&self, capacity: &Capacity) -> Vec<String> {
        let mut ids = Vec::new();
        while let Some(id) = self.try_claim(capacity).await {
            ids.push(id);
        }
        ids
    }

    async fn drain(&self) -> Vec<String> {
        self.claim_all(&memory(u64::MAX)).await
    }
}

fn job(id: &str, owner: &str, priority: i32) -> Job {
    Job { id: id.to_owned(), owner: Some(owner.to_owned()), priority, memory: 1, attempts: 0 }
}

fn large(id: &str, owner: &str, memory: u64) -> Job {
    Job { memory, ..job(id, owner, 0) }
}

/// A capacity with this much memory for everyone.
fn memory(memory: u64) -> Capacity {
    let free = Resources { jobs: usize::MAX, memory };
    let per_owner = Resources { jobs: usize::MAX, memory: u64::MAX };
    Capacity { free, per_owner, owners: HashMap::new() }
}

/// The same, of which this owner has used its part.
fn without_owner(owner: &str) -> Capacity {
    let owners = HashMap::from([(owner.to_owned(), Resources::default())]);
    Capacity { owners, ..memory(u64::MAX) }
}

fn is_lost<T>(result: &Result<T, QueueError>) -> bool {
    matches!(result, Err(QueueError::LeaseLost))
}

pub(crate) async fn jobs_of_one_owner_go_in_order_of_arrival(backend: Backend) {
    let bench = backend.queue(10);
    bench.push_all([job("1", "a", 0), job("2", "a", 0), job("3", "a", 0)]).await;
    assert_eq!(bench.drain().await, ["1", "2", "3"]);
}

pub(crate) async fn higher_priority_goes_first(backend: Backend) {
    let bench = backend.queue(10);
    bench.push_all([job("low", "a", -1), job("usual", "a", 0), job("high", "b", 5)]).await;
    bench.push(job("usual too", "a", 0)).await;
    assert_eq!(bench.drain().await, ["high", "usual", "usual too", "low"]);
}

pub(crate) async fn owners_take_turns_however_many_jobs_they_have(backend: Backend) {
    let bench = backend.queue(100);
    for number in 0..4 {
        bench.push(job(&format!("a{number}"), "a", 0)).await;
    }
    bench.push_all([job("b0", "b", 0), job("b1", "b", 0)]).await;
    bench.push(Job { owner: None, ..job("none0", "", 0) }).await;
    assert_eq!(bench.try_claim(&memory(1)).await.as_deref(), Some("a0"));
    // A new owner waits for one turn of each other owner, not for all their jobs.
    bench.push(job("c0", "c", 0)).await;
    assert_eq!(bench.drain().await, ["b0", "none0", "a1", "c0", "b1", "a2", "a3"]);
}

pub(crate) async fn a_full_queue_rejects_new_jobs_but_not_restored_ones(backend: Backend) {
    let bench = backend.queue(2);
    let queue = &bench.queue;
    bench.push_all([job("1", "a", 0), job("2", "b", 0)]).await;
    assert!(matches!(queue.push(job("3", "c", 9)).await, Err(QueueError::Full)));
    assert_eq!(queue.depth().await, 2);
    // A job that was accepted before a restart ignores the capacity.
    queue.restore(job("0", "a", 0)).await.unwrap();
    assert_eq!(queue.depth().await, 3);
    assert_eq!(bench.drain().await, ["1", "2", "0"]);
    assert_eq!(queue.depth().await, 0);
    bench.push(job("3", "c", 9)).await;
}

pub(crate) async fn jobs_of_other_owners_overtake_a_job_that_does_not_fit(backend: Backend) {
    let bench = backend.queue(10);
    bench.push_all([large("a large", "a", 8), large("a small", "a", 1), large("b", "b", 1)]).await;
    assert_eq!(bench.try_claim(&memory(4)).await.as_deref(), Some("b"));
    assert_eq!(bench.try_claim(&memory(4)).await, None);
    assert_eq!(bench.drain().await, ["a large", "a small"]);
}

pub(crate) async fn a_job_that_does_not_fit_is_not_overtaken_forever(backend: Backend) {
    let bench = backend.queue(1000);
    bench.push(large("large", "a", 8)).await;
    for number in 0..200 {
        bench.push(large(&format!("{number}"), "b", 1)).await;
    }
    // Seven of eight units are free: the small jobs always fit, the large one never does.
    let overtaking = bench.claim_all(&memory(7)).await.len();
    assert!((1..100).contains(&overtaking), "{overtaking} jobs overtook it");
    assert_eq!(bench.queue.depth().await, 201 - overtaking);
    // A job of higher priority is not held back by it.
    bench.push(job("urgent", "c", 1)).await;
    assert_eq!(bench.try_claim(&memory(7)).await.as_deref(), Some("urgent"));
    // Once it fits it goes first, and then the others continue.
    assert_eq!(bench.try_claim(&memory(8)).await.as_deref(), Some("large"));
    assert!(bench.try_claim(&memory(7)).await.is_some());
}

pub(crate) async fn an_owner_at_its_limit_delays_no_other_owner(backend: Backend) {
    let bench = backend.queue(1000);
    let of_a = |id, priority| Job { memory: 2, ..job(id, "a", priority) };
    bench.push_all([of_a("a0", 1), of_a("a1", 0)]).await;
    for number in 0..200 {
        bench.push(job(&format!("b{number}"), "b", 0)).await;
    }
    assert_eq!(bench.claim_all(&without_owner("a")).await.len(), 200);
    // They were not overtaken: they do not block others once there is no capacity for them either.
    bench.push(job("b", "b", 0)).await;
    assert_eq!(bench.try_claim(&memory(1)).await.as_deref(), Some("b"));
    assert_eq!(bench.drain().await, ["a0", "a1"]);
}

pub(crate) async fn a_job_without_an_owner_has_no_limit_of_its_own(backend: Backend) {
    let bench = backend.queue(10);
    bench.push_all([large("a", "a", 4), Job { owner: None, ..large("none", "", 4) }]).await;
    let per_owner = Resources { jobs: 1, memory: 3 };
    let shares = Capacity { per_owner, ..memory(8) };
    assert_eq!(bench.claim_all(&shares).await, ["none"]);
    assert_eq!(bench.drain().await, ["a"]);
}

pub(crate) async fn jobs_continue_when_the_job_they_waited_for_is_removed(backend: Backend) {
    let bench = backend.queue(1000);
    bench.push(large("large", "a", 8)).await;
    for number in 0..200 {
        bench.push(large(&format!("{number}"), "b", 1)).await;
    }
    bench.claim_all(&memory(7)).await;
    assert!(bench.queue.remove("large").await);
    assert!(bench.try_claim(&memory(7)).await.is_some());
}

pub(crate) async fn a_job_can_be_removed_from_any_position(backend: Backend) {
    let bench = backend.queue(10);
    let queue = &bench.queue;
    bench.push_all([job("1", "a", 0), job("2", "a", 0), job("3", "a", 0), job("4", "b", 7)]).await;
    assert!(queue.remove("2").await);
    assert!(queue.remove("4").await);
    assert!(!queue.remove("4").await);
    assert!(!queue.remove("5").await);
    assert_eq!(queue.depth().await, 2);
    assert_eq!(bench.drain().await, ["1", "3"]);
    assert_eq!(queue.oldest_age().await, None);
}

pub(crate) async fn the_age_of_the_oldest_job_is_reported(backend: Backend) {
    let bench = backend.queue(10);
    let queue = &bench.queue;
    assert_eq!(queue.oldest_age().await, None);
    bench.push(job("old", "a", 0)).await;
    let gap = Duration::from_millis(20);
    tokio::time::sleep(gap).await;
    let between = Instant::now();
    bench.push(job("new", "b", 1)).await;
    assert!(queue.oldest_age().await.unwrap() >= gap);
    queue.remove("old").await;
    let age_of_new = queue.oldest_age().await.unwrap();
    assert!(age_of_new <= between.elapsed());
}

pub(crate) async fn concurrent_claims_get_each_job_once(backend: Backend) {
    let bench = backend.queue(1000);
    let workers: Vec<_> = (0..8)
        .map(|number| {
            let queue = Arc::clone(&bench.queue);
            tokio::spawn(async move {
                let mut claimed = Vec::new();
                while claimed.last().is_none_or(|id: &String| !id.starts_with("end")) {
                    let worker = format!("worker {number}");
                    let lease = queue.claim(&worker, &|| memory(1)).await.unwrap();
                    assert_eq!((lease.worker(), lease.attempt()), (&*worker, 1));
                    claimed.push(lease.job().id.clone());
                    lease.finish().await.unwrap();
                }
                claimed
            })
        })
        .collect();
    for number in 0..500 {
        bench.push(job(&format!("{number:03}"), &format!("{}", number % 7), 0)).await;
        tokio::task::yield_now().await;
    }
    for number in 0..workers.len() {
        // The lowest priority, so that they are claimed after all other jobs.
        bench.push(job(&format!("end {number}"), "z", -1)).await;
    }
    let mut claimed = Vec::new();
    for worker in workers {
        claimed.extend(worker.await.unwrap());
    }
    claimed.retain(|id| !id.starts_with("end"));
    claimed.sort();
    let expected: Vec<_> = (0..500).map(|number| format!("{number:03}")).collect();
    assert_eq!(claimed, expected, "each job is claimed once");
}

pub(crate) async fn wake_makes_a_waiting_claim_check_again(backend: Backend) {
    let free = AtomicU64::new(0);
    let bench = backend.queue(10);
    bench.push(large("large", "a", 8)).await;
    let capacity = || memory(free.load(Ordering::SeqCst));
    let mut claim = bench.queue.claim("worker", &capacity);
    assert!(timeout(bench.claim_timeout, &mut claim).await.is_err());
    free.store(8, Ordering::SeqCst);
    bench.queue.wake();
    assert_eq!(claim.await.unwrap().job().id, "large");
}

pub(crate) async fn a_closed_queue_neither_accepts_nor_hands_out_jobs(backend: Backend) {
    let bench = backend.queue(10);
    let queue = &bench.queue;
    bench.push_all([job("leased", "a", 0), job("left", "a", 0)]).await;
    let lease = bench.try_lease("worker", &memory(1)).await.unwrap();
    let nothing = || memory(0);
    let mut claim = queue.claim("worker", &nothing);
    assert!(timeout(bench.claim_timeout, &mut claim).await.is_err());
    queue.close();
    assert!(claim.await.is_none());
    assert!(queue.claim("worker", &|| memory(1)).await.is_none());
    assert!(matches!(queue.push(job("late", "a", 0)).await, Err(QueueError::Closed)));
    assert_eq!(queue.depth().await, 1, "the remaining jobs are still counted");
    lease.finish().await.unwrap();
}

pub(crate) async fn a_claimed_job_belongs_to_one_worker(backend: Backend) {
    let bench = backend.queue(10);
    bench.push(job("1", "a", 0)).await;
    let lease = bench.try_lease("one", &memory(1)).await.unwrap();
    assert_eq!((lease.worker(), &*lease.job().id), ("one", "1"));
    assert_eq!(bench.queue.depth().await, 0, "it does not wait any more");
    assert!(bench.try_lease("two", &memory(1)).await.is_none());
    assert!(!bench.queue.remove("1").await, "a job that waits can be removed");
    lease.extend().await.unwrap();
    lease.finish().await.unwrap();
    assert!(bench.try_lease("two", &memory(1)).await.is_none());
}

pub(crate) async fn each_claim_of_a_job_has_a_larger_attempt_number(backend: Backend) {
    let bench = backend.queue(10);
    bench.push(job("new", "a", 1)).await;
    bench.queue.restore(Job { attempts: 1, ..job("recovered", "a", 0) }).await.unwrap();
    for attempt in 1..=3 {
        let lease = bench.try_lease("worker", &memory(1)).await.unwrap();
        assert_eq!((&*lease.job().id, lease.attempt()), ("new", attempt));
        lease.release().await.unwrap();
    }
    assert!(bench.queue.remove("new").await);
    let lease = bench.try_lease("worker", &memory(1)).await.unwrap();
    assert_eq!((&*lease.job().id, lease.attempt()), ("recovered", 2));
}

pub(crate) async fn a_released_job_keeps_its_position(backend: Backend) {
    let bench = backend.queue(10);
    bench.push_all([job("a0", "a", 0), job("a1", "a", 0), job("b0", "b", 0)]).await;
    let lease = bench.try_lease("worker", &memory(1)).await.unwrap();
    assert_eq!(bench.queue.depth().await, 2);
    lease.release().await.unwrap();
    assert_eq!(bench.queue.depth().await, 3);
    assert_eq!(bench.drain().await, ["a0", "b0", "a1"]);
}

pub(crate) async fn a_finished_job_can_be_added_again(backend: Backend) {
    let bench = backend.queue(10);
    bench.push(job("1", "a", 0)).await;
    bench.try_lease("worker", &memory(1)).await.unwrap().finish().await.unwrap();
    // The same id again, such as after a recovery: its attempt number is larger.
    bench.queue.restore(Job { attempts: 1, ..job("1", "a", 0) }).await.unwrap();
    let lease = bench.try_lease("worker", &memory(1)).await.unwrap();
    assert_eq!(lease.attempt(), 2);
    assert_eq!(bench.queue.depth().await, 0);
    lease.finish().await.unwrap();
}

pub(crate) async fn an_expired_lease_passes_to_another_worker(backend: Backend) {
    let duration = Duration::from_millis(50);
    let bench = backend.queue_with_lease_duration(duration);
    bench.push(job("1", "a", 0)).await;
    let claimed = Instant::now();
    let capacity = || memory(1);
    let crashed = bench.queue.claim("crashed", &capacity).await.unwrap();
    assert_eq!(crashed.duration(), Some(duration));
    let lease = bench.queue.claim("other", &capacity).await.unwrap();
    assert!(claimed.elapsed() >= duration);
    assert_eq!((crashed.attempt(), lease.attempt()), (1, 2));
    assert_eq!((lease.worker(), &*lease.job().id), ("other", "1"));
    assert!(is_lost(&crashed.extend().await));
    assert!(is_lost(&crashed.finish().await));
}

pub(crate) async fn an_extended_lease_does_not_expire(backend: Backend) {
    let duration = Duration::from_secs(2);
    let bench = backend.queue_with_lease_duration(duration);
    bench.push(job("1", "a", 0)).await;
    let capacity = || memory(1);
    let claimed = Instant::now();
    let lease = bench.queue.claim("worker", &capacity).await.unwrap();
    let mut other = bench.queue.claim("other", &capacity);
    while claimed.elapsed() <= duration {
        assert!(timeout(duration / 4, &mut other).await.is_err(), "the lease was extended");
        lease.extend().await.unwrap();
    }
    drop(other);
    lease.finish().await.unwrap();
    assert!(bench.try_lease("other", &memory(1)).await.is_none());
}
