//! The embedded queue, in memory.
//!
//! While a job needs more capacity than is free, smaller jobs overtake it, but only [`MAX_OVERTAKEN`] times. After
//! that the queue waits until the job fits; otherwise a large job would never find enough memory among small ones.
//! The jobs of an owner that has reached its own limit are passed over: only that owner waits for them.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use tokio::sync::Notify;
use tokio::time::timeout_at;

use super::{Capacity, Fit, Job, Lease, LeaseControl, Queue, QueueError};

/// How often other jobs may overtake a job that does not fit.
const MAX_OVERTAKEN: u32 = 16;

/// A bounded queue in memory, fair between owners.
#[derive(Debug)]
pub struct LocalQueue {
    capacity: usize,
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    /// The time after which leases expire; none if they do not.
    lease_duration: Option<Duration>,
    state: Mutex<State>,
    /// Notified when a job may have become claimable: one was added or removed, or memory became free.
    changed: Notify,
}

impl LocalQueue {
    /// Creates an empty queue for at most `capacity` jobs. Leases do not expire: the workers are in this process and
    /// end with it.
    pub fn new(capacity: usize) -> Self {
        Self::with_lease_duration(capacity, None)
    }

    /// Creates an empty queue whose leases expire after this time.
    pub fn with_lease_duration(capacity: usize, lease_duration: Option<Duration>) -> Self {
        let (state, changed) = (Mutex::default(), Notify::new());
        Self { capacity, inner: Arc::new(Inner { lease_duration, state, changed }) }
    }

    fn push_bounded(&self, capacity: usize, job: Job) -> Result<(), QueueError> {
        {
            let mut state = self.inner.lock();
            if state.closed {
                return Err(QueueError::Closed);
            }
            if state.depth >= capacity {
                return Err(QueueError::Full);
            }
            state.add(job);
        }
        self.inner.changed.notify_waiters();
        Ok(())
    }

    async fn next(
        &self,
        worker: &str,
        capacity: &(dyn Fn() -> Capacity + Send + Sync),
    ) -> Option<Lease> {
        loop {
            // Created before the check, so that a change between the check and the wait is not missed.
            let changed = self.inner.changed.notified();
            let capacity = capacity();
            let next_expiry = {
                let mut state = self.inner.lock();
                if state.closed {
                    return None;
                }
                state.expire(Instant::now());
                if let Some(entry) = state.claim(&capacity) {
                    return Some(self.lease(&mut state, entry, worker));
                }
                state.leased.values().filter_map(|leased| leased.expires).min()
            };
            match next_expiry {
                // Whether something changed or a lease expired, the next check finds out.
                Some(at) => {
                    let _ = timeout_at(at.into(), changed).await;
                }
                None => changed.await,
            }
        }
    }

    fn lease(&self, state: &mut State, mut entry: Entry, worker: &str) -> Lease {
        entry.job.attempts += 1;
        let (job, attempt) = (entry.job.clone(), entry.job.attempts);
        let duration = self.inner.lease_duration;
        let expires = self.inner.expires();
        state.leased.insert(job.id.clone(), Leased { entry, expires });
        if expires.is_some() {
            // The other workers now wait for its expiry, too.
            self.inner.changed.notify_waiters();
        }
        let control = Arc::<Inner>::clone(&self.inner);
        Lease::new(job, worker.to_owned(), attempt, duration, control)
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing panics while the state is half changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// When a lease that begins now expires.
    fn expires(&self) -> Option<Instant> {
        self.lease_duration.map(|duration| Instant::now() + duration)
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
        worker: &'a str,
        capacity: &'a (dyn Fn() -> Capacity + Send + Sync),
    ) -> BoxFuture<'a, Option<Lease>> {
        self.next(worker, capacity).boxed()
    }

    fn remove<'a>(&'a self, id: &'a str) -> BoxFuture<'a, bool> {
        let removed = self.inner.lock().remove(id);
        if removed {
            self.inner.changed.notify_waiters();
        }
        ready(removed).boxed()
    }

    fn depth(&self) -> BoxFuture<'_, usize> {
        ready(self.inner.lock().depth).boxed()
    }

    fn oldest_age(&self) -> BoxFuture<'_, Option<Duration>> {
        ready(self.inner.lock().oldest().map(|since| since.elapsed())).boxed()
    }

    fn close(&self) {
        self.inner.lock().closed = true;
        self.inner.changed.notify_waiters();
    }

    fn wake(&self) {
        // The check is cheaper for the caller than waking a task that finds the queue empty.
        if self.inner.lock().depth > 0 {
            self.inner.changed.notify_waiters();
        }
    }
}

impl LeaseControl for Inner {
    fn extend<'a>(&'a self, id: &'a str, attempt: u32) -> BoxFuture<'a, Result<(), QueueError>> {
        let expires = self.expires();
        let mut state = self.lock();
        let extended = state.valid_lease(id, attempt).map(|leased| leased.expires = expires);
        ready(extended).boxed()
    }

    fn finish<'a>(&'a self, id: &'a str, attempt: u32) -> BoxFuture<'a, Result<(), QueueError>> {
        ready(self.lock().end_lease(id, attempt).map(drop)).boxed()
    }

    fn release<'a>(&'a self, id: &'a str, attempt: u32) -> BoxFuture<'a, Result<(), QueueError>> {
        let released = {
            let mut state = self.lock();
            state.end_lease(id, attempt).map(|entry| state.put_back(entry))
        };
        self.changed.notify_waiters();
        ready(released).boxed()
    }
}

#[derive(Debug, Default)]
struct State {
    /// Most urgent first. None is empty.
    classes: BTreeMap<Reverse<i32>, PriorityClass>,
    depth: usize,
    /// The claimed jobs by id.
    leased: HashMap<String, Leased>,
    closed: bool,
}

#[derive(Debug)]
struct Leased {
    /// The job, whose number of attempts includes this one.
    entry: Entry,
    expires: Option<Instant>,
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

    /// Puts a claimed job back to the front of its owner's jobs, and the owner to the front of the turns.
    fn put_back(&mut self, entry: Entry) {
        let class = self.classes.entry(Reverse(entry.job.priority)).or_default();
        class.turns.retain(|owner| *owner != entry.job.owner);
        class.turns.push_front(entry.job.owner.clone());
        class.by_owner.entry(entry.job.owner.clone()).or_default().push_front(entry);
        self.depth += 1;
    }

    /// Puts back the jobs whose leases have expired.
    fn expire(&mut self, now: Instant) {
        let is_expired = |leased: &Leased| leased.expires.is_some_and(|expires| expires <= now);
        let expired: Vec<_> = self.leased.extract_if(|_, leased| is_expired(leased)).collect();
        for (_, leased) in expired {
            self.put_back(leased.entry);
        }
    }

    /// The lease with this attempt number, if it has not ended or expired.
    fn valid_lease(&mut self, id: &str, attempt: u32) -> Result<&mut Leased, QueueError> {
        self.expire(Instant::now());
        let leased = self.leased.get_mut(id).filter(|leased| leased.entry.job.attempts == attempt);
        leased.ok_or(QueueError::LeaseLost)
    }

    fn end_lease(&mut self, id: &str, attempt: u32) -> Result<Entry, QueueError> {
        self.valid_lease(id, attempt)?;
        self.leased.remove(id).map(|leased| leased.entry).ok_or(QueueError::LeaseLost)
    }

    fn claim(&mut self, capacity: &Capacity) -> Option<Entry> {
        let mut overtaken = Vec::new();
        let (priority, turn) = self.next(capacity, &mut overtaken)?;
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
        Some(entry)
    }

    /// Finds the first job in order that can start, as its class and its owner's position in the turns, and collects
    /// the positions of those it overtakes. Returns none if one of those must not be overtaken again.
    fn next(
        &self,
        capacity: &Capacity,
        overtaken: &mut Vec<(Reverse<i32>, usize)>,
    ) -> Option<(Reverse<i32>, usize)> {
        for (&priority, class) in &self.classes {
            for (turn, owner) in class.turns.iter().enumerate() {
                let first = class.by_owner.get(owner)?.front()?;
                match capacity.fit(&first.job) {
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
