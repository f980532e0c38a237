use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use sandbox_store::{Job, LocalQueue, Queue, QueueError};

fn job(id: &str, owner: &str, priority: i32) -> Job {
    Job { id: id.to_owned(), owner: Some(owner.to_owned()), priority, memory: 1 }
}

fn large(id: &str, owner: &str, memory: u64) -> Job {
    Job { memory, ..job(id, owner, 0) }
}

/// What a queue in memory answers at once.
fn now<T>(answer: BoxFuture<'_, T>) -> T {
    answer.now_or_never().expect("nothing is waited for")
}

fn push_all<const N: usize>(queue: &LocalQueue, jobs: [Job; N]) {
    for job in jobs {
        now(queue.push(job)).unwrap();
    }
}

/// The id of the next one that fits, if there is one now.
fn next_if_any(queue: &LocalQueue, fits: impl Fn(&Job) -> bool + Send + Sync) -> Option<String> {
    queue.take(&fits).now_or_never().flatten().map(|job| job.id)
}

/// All that are there now, in the order in which they are given out.
fn drain(queue: &LocalQueue) -> Vec<String> {
    std::iter::from_fn(|| next_if_any(queue, |_| true)).collect()
}

#[test]
fn one_owner_is_served_in_order() {
    let queue = LocalQueue::new(10);
    push_all(&queue, [job("1", "a", 0), job("2", "a", 0), job("3", "a", 0)]);
    assert_eq!(drain(&queue), ["1", "2", "3"]);
}

#[test]
fn more_urgent_ones_go_first() {
    let queue = LocalQueue::new(10);
    push_all(&queue, [job("low", "a", -1), job("usual", "a", 0), job("high", "b", 5)]);
    now(queue.push(job("usual too", "a", 0))).unwrap();
    assert_eq!(drain(&queue), ["high", "usual", "usual too", "low"]);
}

#[test]
fn owners_take_turns_however_much_they_have() {
    let queue = LocalQueue::new(100);
    for number in 0..4 {
        now(queue.push(job(&format!("a{number}"), "a", 0))).unwrap();
    }
    push_all(&queue, [job("b0", "b", 0), job("b1", "b", 0)]);
    now(queue.push(Job { owner: None, ..job("nobody", "", 0) })).unwrap();
    assert_eq!(next_if_any(&queue, |_| true).as_deref(), Some("a0"));
    // One who comes anew waits for one turn of each, not for all that they have.
    now(queue.push(job("c0", "c", 0))).unwrap();
    assert_eq!(drain(&queue), ["b0", "nobody", "a1", "c0", "b1", "a2", "a3"]);
}

#[test]
fn no_more_wait_than_may() {
    let queue = LocalQueue::new(2);
    push_all(&queue, [job("1", "a", 0), job("2", "b", 0)]);
    assert!(matches!(now(queue.push(job("3", "c", 9))), Err(QueueError::Full)));
    assert_eq!(now(queue.depth()), 2);
    // What was accepted before a restart is not new.
    now(queue.restore(job("0", "a", 0))).unwrap();
    assert_eq!(now(queue.depth()), 3);
    assert_eq!(drain(&queue), ["1", "2", "0"]);
    assert_eq!(now(queue.depth()), 0);
    now(queue.push(job("3", "c", 9))).unwrap();
}

#[test]
fn what_does_not_fit_lets_others_pass_but_not_its_owners() {
    let queue = LocalQueue::new(10);
    push_all(&queue, [large("a large", "a", 8), large("a small", "a", 1), large("b", "b", 1)]);
    assert_eq!(next_if_any(&queue, |job| job.memory <= 4).as_deref(), Some("b"));
    assert_eq!(next_if_any(&queue, |job| job.memory <= 4), None);
    assert_eq!(drain(&queue), ["a large", "a small"]);
}

#[test]
fn what_does_not_fit_is_not_passed_over_for_ever() {
    let queue = LocalQueue::new(1000);
    now(queue.push(large("large", "a", 8))).unwrap();
    for number in 0..200 {
        now(queue.push(large(&format!("{number}"), "b", 1))).unwrap();
    }
    // Seven of eight are always free: small ones fit each time, the large one never.
    let passed = std::iter::from_fn(|| next_if_any(&queue, |job| job.memory <= 7)).count();
    assert!((1..100).contains(&passed), "{passed} passed it");
    assert_eq!(now(queue.depth()), 201 - passed);
    // A more urgent one does not stand behind it.
    now(queue.push(job("urgent", "c", 1))).unwrap();
    assert_eq!(next_if_any(&queue, |job| job.memory <= 7).as_deref(), Some("urgent"));
    // Once there is room it is the first, and the others go on.
    assert_eq!(next_if_any(&queue, |job| job.memory <= 8).as_deref(), Some("large"));
    assert!(next_if_any(&queue, |job| job.memory <= 7).is_some());
}

#[test]
fn without_the_one_they_waited_for_others_go_on() {
    let queue = LocalQueue::new(1000);
    now(queue.push(large("large", "a", 8))).unwrap();
    for number in 0..200 {
        now(queue.push(large(&format!("{number}"), "b", 1))).unwrap();
    }
    while next_if_any(&queue, |job| job.memory <= 7).is_some() {}
    assert!(now(queue.remove("large")));
    assert!(next_if_any(&queue, |job| job.memory <= 7).is_some());
}

#[test]
fn a_job_can_be_removed_from_anywhere() {
    let queue = LocalQueue::new(10);
    push_all(&queue, [job("1", "a", 0), job("2", "a", 0), job("3", "a", 0), job("4", "b", 7)]);
    assert!(now(queue.remove("2")));
    assert!(now(queue.remove("4")));
    assert!(!now(queue.remove("4")));
    assert!(!now(queue.remove("5")));
    assert_eq!(now(queue.depth()), 2);
    assert_eq!(drain(&queue), ["1", "3"]);
    assert_eq!(now(queue.oldest()), None);
}

#[test]
fn the_oldest_tells_its_age() {
    let queue = LocalQueue::new(10);
    assert_eq!(now(queue.oldest()), None);
    now(queue.push(job("old", "a", 0))).unwrap();
    let gap = Duration::from_millis(20);
    std::thread::sleep(gap);
    let between = Instant::now();
    now(queue.push(job("new", "b", 1))).unwrap();
    assert!(now(queue.oldest()).unwrap() >= gap);
    now(queue.remove("old"));
    let age_of_new = now(queue.oldest()).unwrap();
    assert!(age_of_new <= between.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_waits_is_given_what_comes() {
    let queue = Arc::new(LocalQueue::new(1000));
    let takers: Vec<_> = (0..8)
        .map(|_| {
            let queue = Arc::clone(&queue);
            tokio::spawn(async move {
                let mut taken = Vec::new();
                while taken.last().is_none_or(|id: &String| id != "end") {
                    taken.push(queue.take(&|_| true).await.unwrap().id);
                }
                taken
            })
        })
        .collect();
    for number in 0..500 {
        now(queue.push(job(&format!("{number:03}"), &format!("{}", number % 7), 0))).unwrap();
        tokio::task::yield_now().await;
    }
    for _ in 0..takers.len() {
        // The least urgent, so that they are taken when all else is.
        now(queue.push(job("end", "z", -1))).unwrap();
    }
    let mut taken = Vec::new();
    for taker in takers {
        taken.extend(taker.await.unwrap());
    }
    taken.retain(|id| id != "end");
    taken.sort();
    let expected: Vec<_> = (0..500).map(|number| format!("{number:03}")).collect();
    assert_eq!(taken, expected, "each is given out once");
}

#[tokio::test]
async fn room_that_became_free_is_noticed_when_told() {
    let free = AtomicU64::new(0);
    let queue = LocalQueue::new(10);
    now(queue.push(large("large", "a", 8))).unwrap();
    let fits = |job: &Job| job.memory <= free.load(Ordering::SeqCst);
    let mut waits = queue.take(&fits);
    assert!(waits.as_mut().now_or_never().is_none());
    free.store(8, Ordering::SeqCst);
    queue.wake();
    assert_eq!(waits.await.unwrap().id, "large");
}

#[tokio::test]
async fn a_closed_queue_takes_and_gives_nothing() {
    let queue = LocalQueue::new(10);
    now(queue.push(job("left", "a", 0))).unwrap();
    let mut waits = queue.take(&|_| false);
    assert!(waits.as_mut().now_or_never().is_none());
    queue.close();
    assert_eq!(waits.await, None);
    assert_eq!(queue.take(&|_| true).await, None);
    assert!(matches!(now(queue.push(job("late", "a", 0))), Err(QueueError::Closed)));
    assert_eq!(now(queue.depth()), 1, "what is left can still be counted");
}
