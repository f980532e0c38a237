use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use sandbox_store::{Fit, Job, LocalQueue, Queue, QueueError};

fn job(id: &str, owner: &str, priority: i32) -> Job {
    Job { id: id.to_owned(), owner: Some(owner.to_owned()), priority, memory: 1 }
}

fn large(id: &str, owner: &str, memory: u64) -> Job {
    Job { memory, ..job(id, owner, 0) }
}

/// The output of a future that is ready at once.
fn now<T>(answer: BoxFuture<'_, T>) -> T {
    answer.now_or_never().expect("a queue in memory is ready at once")
}

fn push_all<const N: usize>(queue: &LocalQueue, jobs: [Job; N]) {
    for job in jobs {
        now(queue.push(job)).unwrap();
    }
}

/// Claims the next job that fits, if there is one, and returns its id.
fn try_claim(queue: &LocalQueue, fits: impl Fn(&Job) -> bool + Send + Sync) -> Option<String> {
    let fit = |job: &Job| if fits(job) { Fit::Now } else { Fit::NoCapacity };
    queue.claim(&fit).now_or_never().flatten().map(|job| job.id)
}

/// Claims all waiting jobs and returns their ids in order.
fn drain(queue: &LocalQueue) -> Vec<String> {
    std::iter::from_fn(|| try_claim(queue, |_| true)).collect()
}

#[test]
fn jobs_of_one_owner_go_in_order_of_arrival() {
    let queue = LocalQueue::new(10);
    push_all(&queue, [job("1", "a", 0), job("2", "a", 0), job("3", "a", 0)]);
    assert_eq!(drain(&queue), ["1", "2", "3"]);
}

#[test]
fn higher_priority_goes_first() {
    let queue = LocalQueue::new(10);
    push_all(&queue, [job("low", "a", -1), job("usual", "a", 0), job("high", "b", 5)]);
    now(queue.push(job("usual too", "a", 0))).unwrap();
    assert_eq!(drain(&queue), ["high", "usual", "usual too", "low"]);
}

#[test]
fn owners_take_turns_however_many_jobs_they_have() {
    let queue = LocalQueue::new(100);
    for number in 0..4 {
        now(queue.push(job(&format!("a{number}"), "a", 0))).unwrap();
    }
    push_all(&queue, [job("b0", "b", 0), job("b1", "b", 0)]);
    now(queue.push(Job { owner: None, ..job("none0", "", 0) })).unwrap();
    assert_eq!(try_claim(&queue, |_| true).as_deref(), Some("a0"));
    // A new owner claim for one turn of each other owner, not for all their jobs.
    now(queue.push(job("c0", "c", 0))).unwrap();
    assert_eq!(drain(&queue), ["b0", "none0", "a1", "c0", "b1", "a2", "a3"]);
}

#[test]
fn a_full_queue_rejects_new_jobs_but_not_restored_ones() {
    let queue = LocalQueue::new(2);
    push_all(&queue, [job("1", "a", 0), job("2", "b", 0)]);
    assert!(matches!(now(queue.push(job("3", "c", 9))), Err(QueueError::Full)));
    assert_eq!(now(queue.depth()), 2);
    // A job that was accepted before a restart ignores the capacity.
    now(queue.restore(job("0", "a", 0))).unwrap();
    assert_eq!(now(queue.depth()), 3);
    assert_eq!(drain(&queue), ["1", "2", "0"]);
    assert_eq!(now(queue.depth()), 0);
    now(queue.push(job("3", "c", 9))).unwrap();
}

#[test]
fn jobs_of_other_owners_overtake_a_job_that_does_not_fit() {
    let queue = LocalQueue::new(10);
    push_all(&queue, [large("a large", "a", 8), large("a small", "a", 1), large("b", "b", 1)]);
    assert_eq!(try_claim(&queue, |job| job.memory <= 4).as_deref(), Some("b"));
    assert_eq!(try_claim(&queue, |job| job.memory <= 4), None);
    assert_eq!(drain(&queue), ["a large", "a small"]);
}

#[test]
fn a_job_that_does_not_fit_is_not_overtaken_forever() {
    let queue = LocalQueue::new(1000);
    now(queue.push(large("large", "a", 8))).unwrap();
    for number in 0..200 {
        now(queue.push(large(&format!("{number}"), "b", 1))).unwrap();
    }
    // Seven of eight units are free: the small jobs always fit, the large one never does.
    let overtaking = std::iter::from_fn(|| try_claim(&queue, |job| job.memory <= 7)).count();
    assert!((1..100).contains(&overtaking), "{overtaking} jobs overtook it");
    assert_eq!(now(queue.depth()), 201 - overtaking);
    // A job of higher priority is not held back by it.
    now(queue.push(job("urgent", "c", 1))).unwrap();
    assert_eq!(try_claim(&queue, |job| job.memory <= 7).as_deref(), Some("urgent"));
    // Once it fits it goes first, and then the others continue.
    assert_eq!(try_claim(&queue, |job| job.memory <= 8).as_deref(), Some("large"));
    assert!(try_claim(&queue, |job| job.memory <= 7).is_some());
}

#[test]
fn an_owner_at_its_limit_delays_no_other_owner() {
    let queue = LocalQueue::new(1000);
    push_all(&queue, [job("a0", "a", 1), job("a1", "a", 0)]);
    for number in 0..200 {
        now(queue.push(job(&format!("b{number}"), "b", 0))).unwrap();
    }
    let fit = |job: &Job| {
        if job.owner.as_deref() == Some("a") { Fit::OwnerAtLimit } else { Fit::Now }
    };
    let claimed = std::iter::from_fn(|| queue.claim(&fit).now_or_never().flatten()).count();
    assert_eq!(claimed, 200);
    // They were not overtaken: it does not block others once there is no capacity for them either.
    push_all(&queue, [job("b", "b", 0)]);
    assert_eq!(try_claim(&queue, |job| job.id == "b").as_deref(), Some("b"));
    assert_eq!(drain(&queue), ["a0", "a1"]);
}

#[test]
fn jobs_continue_when_the_job_they_waited_for_is_removed() {
    let queue = LocalQueue::new(1000);
    now(queue.push(large("large", "a", 8))).unwrap();
    for number in 0..200 {
        now(queue.push(large(&format!("{number}"), "b", 1))).unwrap();
    }
    while try_claim(&queue, |job| job.memory <= 7).is_some() {}
    assert!(now(queue.remove("large")));
    assert!(try_claim(&queue, |job| job.memory <= 7).is_some());
}

#[test]
fn a_job_can_be_removed_from_any_position() {
    let queue = LocalQueue::new(10);
    push_all(&queue, [job("1", "a", 0), job("2", "a", 0), job("3", "a", 0), job("4", "b", 7)]);
    assert!(now(queue.remove("2")));
    assert!(now(queue.remove("4")));
    assert!(!now(queue.remove("4")));
    assert!(!now(queue.remove("5")));
    assert_eq!(now(queue.depth()), 2);
    assert_eq!(drain(&queue), ["1", "3"]);
    assert_eq!(now(queue.oldest_age()), None);
}

#[test]
fn the_age_of_the_oldest_job_is_reported() {
    let queue = LocalQueue::new(10);
    assert_eq!(now(queue.oldest_age()), None);
    now(queue.push(job("old", "a", 0))).unwrap();
    let gap = Duration::from_millis(20);
    std::thread::sleep(gap);
    let between = Instant::now();
    now(queue.push(job("new", "b", 1))).unwrap();
    assert!(now(queue.oldest_age()).unwrap() >= gap);
    now(queue.remove("old"));
    let age_of_new = now(queue.oldest_age()).unwrap();
    assert!(age_of_new <= between.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_claims_get_each_job_once() {
    let queue = Arc::new(LocalQueue::new(1000));
    let workers: Vec<_> = (0..8)
        .map(|_| {
            let queue = Arc::clone(&queue);
            tokio::spawn(async move {
                let mut claimed = Vec::new();
                while claimed.last().is_none_or(|id: &String| id != "end") {
                    claimed.push(queue.claim(&|_| Fit::Now).await.unwrap().id);
                }
                claimed
            })
        })
        .collect();
    for number in 0..500 {
        now(queue.push(job(&format!("{number:03}"), &format!("{}", number % 7), 0))).unwrap();
        tokio::task::yield_now().await;
    }
    for _ in 0..workers.len() {
        // The lowest priority, so that they are claimed after all other jobs.
        now(queue.push(job("end", "z", -1))).unwrap();
    }
    let mut claimed = Vec::new();
    for worker in workers {
        claimed.extend(worker.await.unwrap());
    }
    claimed.retain(|id| id != "end");
    claimed.sort();
    let expected: Vec<_> = (0..500).map(|number| format!("{number:03}")).collect();
    assert_eq!(claimed, expected, "each job is claimed once");
}

#[tokio::test]
async fn wake_makes_a_waiting_claim_check_again() {
    let free = AtomicU64::new(0);
    let queue = LocalQueue::new(10);
    now(queue.push(large("large", "a", 8))).unwrap();
    let fit = |job: &Job| {
        if job.memory <= free.load(Ordering::SeqCst) { Fit::Now } else { Fit::NoCapacity }
    };
    let mut claim = queue.claim(&fit);
    assert!(claim.as_mut().now_or_never().is_none());
    free.store(8, Ordering::SeqCst);
    queue.wake();
    assert_eq!(claim.await.unwrap().id, "large");
}

#[tokio::test]
async fn a_closed_queue_neither_accepts_nor_hands_out_jobs() {
    let queue = LocalQueue::new(10);
    now(queue.push(job("left", "a", 0))).unwrap();
    let mut claim = queue.claim(&|_| Fit::NoCapacity);
    assert!(claim.as_mut().now_or_never().is_none());
    queue.close();
    assert_eq!(claim.await, None);
    assert_eq!(queue.claim(&|_| Fit::Now).await, None);
    assert!(matches!(now(queue.push(job("late", "a", 0))), Err(QueueError::Closed)));
    assert_eq!(now(queue.depth()), 1, "the remaining jobs are still counted");
}
