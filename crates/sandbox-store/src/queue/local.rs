//! The embedded queue, in memory.
//!
//! While a job needs more capacity than is free, smaller jobs overtake it, but only [`MAX_OVERTAKEN`] times. After
//! that the queue waits until the job fits; otherwise a large job would never find enough memory among small ones.
//! The jobs of an owner that has reached its own limit are passed over: only that owner waits for them.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use tokio::sync::Notify;

use super::{Fit, Job, Queue, QueueError};

/// How often other jobs may overtake a job that does not fit.
const MAX_OVERTAKEN: u32 = 16;

/// A bounded queue in memory, fair between owners.
#[derive(Debug)]
pub struct LocalQueue {
    capacity: usize,
    state: Mutex<State>,
    /// Notified when a job may have become claimable: one was added or removed, or memory became free.
    changed: Notify,
}

impl LocalQueue {
    /// Creates an empty queue for at most `capacity` jobs.
    pub fn new(capacity: usize) -> Self {
        Self { capacity, state: Mutex::default(), changed: Notify::new() }
    }

    fn push_bounded(&self, capacity: usize, job: Job) -> Result<(), QueueError> {
        {
            let mut state = self.lock();
            if state.closed {
                return Err(QueueError::Closed);
            }
            if state.depth >= capacity {
                return Err(QueueError::Full);
            }
            state.add(job);
        }
        self.changed.notify_waiters();
        Ok(())
    }

    async fn next(&self, fit: &(dyn Fn(&Job) -> Fit + Send + Sync)) -> Option<Job> {
        loop {
            // Created before the check, so that a change between the check and the wait is not missed.
            let changed = self.changed.notified();
            {
                let mut state = self.lock();
                if state.closed {
                    return None;
                }
                if let Some(job) = state.claim(fit) {
                    return Some(job);
                }
            }
            changed.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Only `fit` can panic, and it is called before anything is modified.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue for LocalQueue {
    fn push(&self, job: Job) -> BoxFuture<'_, Result<(), QueueError>> {
        ready(self.push_bounded(self.capacity, job)).boxed()
    }

    fn restore(&self, job: Job) -> BoxFuture<'_, Result<(), QueueError>> {
        ready(self.push_bounded(usize::MAX, job)).boxed()
    }

    fn claim<'a>(
        &'a self,
        fit: &'a (dyn Fn(&Job) -> Fit + Send + Sync),
    ) -> BoxFuture<'a, Option<Job>> {
        self.next(fit).boxed()
    }

    fn release<'a>(&'a self, _id: &'a str) -> BoxFuture<'a, ()> {
        // A claimed job is not kept: there is no other server to hand it to.
        ready(()).boxed()
    }

    fn remove<'a>(&'a self, id: &'a str) -> BoxFuture<'a, bool> {
        let removed = self.lock().remove(id);
        if removed {
            self.changed.notify_waiters();
        }
        ready(removed).boxed()
    }

    fn depth(&self) -> BoxFuture<'_, usize> {
        ready(self.lock().depth).boxed()
    }

    fn oldest_age(&self) -> BoxFuture<'_, Option<Duration>> {
        ready(self.lock().oldest().map(|since| since.elapsed())).boxed()
    }

    fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_waiters();
    }

    fn wake(&self) {
        // The check is cheaper for the caller than waking a task that finds the queue empty.
        if self.lock().depth > 0 {
            self.changed.notify_waiters();
        }
    }
}

#[derive(Debug, Default)]
struct State {
    /// Most urgent first. None is empty.
    classes: BTreeMap<Reverse<i32>, PriorityClass>,
    depth: usize,
    closed: bool,
}

/// The jobs of one priority.
#[derive(Debug, Default)]
struct PriorityClass {
    /// The owners with jobs in this class, in the order of their turns.
    turns: VecDeque<Option<String>>,
    /// The jobs of each owner in the order of their arrival. None is empty.
    by_owner: HashMap<Option<String>, VecDeque<Entry>>,
}

#[derive(Debug)]
struct Entry {
    job: Job,
    since: Instant,
    /// How often a job behind it was claimed first.
    overtaken: u32,
}

impl State {
    fn add(&mut self, job: Job) {
        let class = self.classes.entry(Reverse(job.priority)).or_default();
        if !class.by_owner.contains_key(&job.owner) {
            class.turns.push_back(job.owner.clone());
        }
        let jobs = class.by_owner.entry(job.owner.clone()).or_default();
        jobs.push_back(Entry { job, since: Instant::now(), overtaken: 0 });
        self.depth += 1;
    }

    fn claim(&mut self, fit: impl Fn(&Job) -> Fit) -> Option<Job> {
        let mut overtaken = Vec::new();
        let (priority, turn) = self.next(fit, &mut overtaken)?;
        for (priority, turn) in overtaken {
            if let Some(entry) = self.classes.get_mut(&priority).and_then(|class| class.first(turn))
            {
                entry.overtaken += 1;
            }
        }
        let class = self.classes.get_mut(&priority)?;
        let owner = class.turns.remove(turn)?;
        let jobs = class.by_owner.get_mut(&owner)?;
        let entry = jobs.pop_front()?;
        if jobs.is_empty() {
            class.by_owner.remove(&owner);
        } else {
            class.turns.push_back(owner);
        }
        self.job_removed(priority);
        Some(entry.job)
    }

    /// Finds the first job in order that can start, as its class and its owner's position in the turns, and collects
    /// the positions of those it overtakes. Returns none if one of those must not be overtaken again.
    fn next(
        &self,
        fit: impl Fn(&Job) -> Fit,
        overtaken: &mut Vec<(Reverse<i32>, usize)>,
    ) -> Option<(Reverse<i32>, usize)> {
        for (&priority, class) in &self.classes {
            for (turn, owner) in class.turns.iter().enumerate() {
                let first = class.by_owner.get(owner)?.front()?;
                match fit(&first.job) {
                    Fit::Now => return Some((priority, turn)),
                    Fit::NoCapacity if first.overtaken >= MAX_OVERTAKEN => return None,
                    Fit::NoCapacity => overtaken.push((priority, turn)),
                    Fit::OwnerAtLimit => {}
                }
            }
        }
        None
    }

    fn remove(&mut self, id: &str) -> bool {
        let found = self
            .classes
            .iter_mut()
            .find_map(|(&priority, class)| class.remove(id).then_some(priority));
        if let Some(priority) = found {
            self.job_removed(priority);
        }
        found.is_some()
    }

    fn job_removed(&mut self, priority: Reverse<i32>) {
        self.depth -= 1;
        if self.classes.get(&priority).is_some_and(|class| class.turns.is_empty()) {
            self.classes.remove(&priority);
        }
    }

    fn oldest(&self) -> Option<Instant> {
        self.classes
            .values()
            .flat_map(|class| class.by_owner.values())
            .filter_map(|jobs| jobs.front())
            .map(|entry| entry.since)
            .min()
    }
}

impl PriorityClass {
    /// The first job of the owner at this position in the turns.
    fn first(&mut self, turn: usize) -> Option<&mut Entry> {
        self.by_owner.get_mut(self.turns.get(turn)?)?.front_mut()
    }

    fn remove(&mut self, id: &str) -> bool {
        let found = self.by_owner.iter().find_map(|(owner, jobs)| {
            let position = jobs.iter().position(|entry| entry.job.id == id)?;
            Some((owner.clone(), position))
        });
        let Some((owner, position)) = found else { return false };
        if let Some(jobs) = self.by_owner.get_mut(&owner) {
            jobs.remove(position);
            if jobs.is_empty() {
                self.by_owner.remove(&owner);
                self.turns.retain(|turn| *turn != owner);
            }
        }
        true
    }
}
