//! The embedded queue, in memory.
//!
//! A job may not fit yet, when it wants more memory than is free: others go before it, but only so
//! often. Then the queue waits until it fits, or a large job would never find enough room between the
//! small ones.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use tokio::sync::Notify;

use super::{Job, Queue, QueueError};

/// A job that did not fit is passed over so often before others wait for it.
const PATIENCE: u32 = 16;

/// A bounded queue in memory, fair between owners.
#[derive(Debug)]
pub struct LocalQueue {
    bound: usize,
    waiting: Mutex<Waiting>,
    /// Told of whatever may let a job go: one that came, one that was removed, room that became free.
    changed: Notify,
}

impl LocalQueue {
    /// An empty queue in which at most so many jobs wait.
    pub fn new(bound: usize) -> Self {
        Self { bound, waiting: Mutex::default(), changed: Notify::new() }
    }

    fn push_below(&self, bound: usize, job: Job) -> Result<(), QueueError> {
        {
            let mut waiting = self.lock();
            if waiting.closed {
                return Err(QueueError::Closed);
            }
            if waiting.depth >= bound {
                return Err(QueueError::Full);
            }
            waiting.add(job);
        }
        self.changed.notify_waiters();
        Ok(())
    }

    async fn next(&self, fits: &(dyn Fn(&Job) -> bool + Send + Sync)) -> Option<Job> {
        loop {
            // Made before looking: a change between looking and waiting is not missed.
            let changed = self.changed.notified();
            {
                let mut waiting = self.lock();
                if waiting.closed {
                    return None;
                }
                if let Some(job) = waiting.take(fits) {
                    return Some(job);
                }
            }
            changed.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        // Only the question whether a job fits can panic, and it is asked before anything changes.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue for LocalQueue {
    fn push(&self, job: Job) -> BoxFuture<'_, Result<(), QueueError>> {
        ready(self.push_below(self.bound, job)).boxed()
    }

    fn restore(&self, job: Job) -> BoxFuture<'_, Result<(), QueueError>> {
        ready(self.push_below(usize::MAX, job)).boxed()
    }

    fn take<'a>(
        &'a self,
        fits: &'a (dyn Fn(&Job) -> bool + Send + Sync),
    ) -> BoxFuture<'a, Option<Job>> {
        self.next(fits).boxed()
    }

    fn done<'a>(&'a self, _id: &'a str) -> BoxFuture<'a, ()> {
        // Nobody else could take it.
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

    fn oldest(&self) -> BoxFuture<'_, Option<Duration>> {
        ready(self.lock().oldest().map(|since| since.elapsed())).boxed()
    }

    fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_waiters();
    }

    fn wake(&self) {
        // To wake somebody who finds nothing costs whoever does it more than a look.
        if self.lock().depth > 0 {
            self.changed.notify_waiters();
        }
    }
}

#[derive(Debug, Default)]
struct Waiting {
    /// The most urgent first. None of them is empty.
    classes: BTreeMap<Reverse<i32>, Class>,
    depth: usize,
    closed: bool,
}

/// Jobs of one priority.
#[derive(Debug, Default)]
struct Class {
    /// Owners with jobs here, the one whose turn it is first.
    turns: VecDeque<Option<String>>,
    /// What each of them has here, in the order in which it came. None of the lines is empty.
    lines: HashMap<Option<String>, VecDeque<Entry>>,
}

#[derive(Debug)]
struct Entry {
    job: Job,
    since: Instant,
    /// How often another was taken that stood behind it.
    passed: u32,
}

impl Waiting {
    fn add(&mut self, job: Job) {
        let class = self.classes.entry(Reverse(job.priority)).or_default();
        if !class.lines.contains_key(&job.owner) {
            class.turns.push_back(job.owner.clone());
        }
        let line = class.lines.entry(job.owner.clone()).or_default();
        line.push_back(Entry { job, since: Instant::now(), passed: 0 });
        self.depth += 1;
    }

    fn take(&mut self, fits: impl Fn(&Job) -> bool) -> Option<Job> {
        let (priority, turn) = self.next(fits)?;
        self.count_passed(priority, turn);
        let class = self.classes.get_mut(&priority)?;
        let owner = class.turns.remove(turn)?;
        let line = class.lines.get_mut(&owner)?;
        let entry = line.pop_front()?;
        if line.is_empty() {
            class.lines.remove(&owner);
        } else {
            class.turns.push_back(owner);
        }
        self.taken_from(priority);
        Some(entry.job)
    }

    /// The first in order that fits, as its class and the place of its owner's turn there; none if
    /// one before it has been passed over often enough.
    fn next(&self, fits: impl Fn(&Job) -> bool) -> Option<(Reverse<i32>, usize)> {
        for (&priority, class) in &self.classes {
            for (turn, owner) in class.turns.iter().enumerate() {
                let first = class.lines.get(owner)?.front()?;
                if fits(&first.job) {
                    return Some((priority, turn));
                }
                if first.passed >= PATIENCE {
                    return None;
                }
            }
        }
        None
    }

    /// Remembers that those before this place are passed over.
    fn count_passed(&mut self, priority: Reverse<i32>, turn: usize) {
        for (&class_priority, class) in self.classes.range_mut(..=priority) {
            let passed = if class_priority == priority { turn } else { class.turns.len() };
            for owner in class.turns.iter().take(passed) {
                if let Some(first) = class.lines.get_mut(owner).and_then(VecDeque::front_mut) {
                    first.passed += 1;
                }
            }
        }
    }

    fn remove(&mut self, id: &str) -> bool {
        let found = self
            .classes
            .iter_mut()
            .find_map(|(&priority, class)| class.remove(id).then_some(priority));
        if let Some(priority) = found {
            self.taken_from(priority);
        }
        found.is_some()
    }

    fn taken_from(&mut self, priority: Reverse<i32>) {
        self.depth -= 1;
        if self.classes.get(&priority).is_some_and(|class| class.turns.is_empty()) {
            self.classes.remove(&priority);
        }
    }

    fn oldest(&self) -> Option<Instant> {
        self.classes
            .values()
            .flat_map(|class| class.lines.values())
            .filter_map(|line| line.front())
            .map(|entry| entry.since)
            .min()
    }
}

impl Class {
    fn remove(&mut self, id: &str) -> bool {
        let found = self.lines.iter().find_map(|(owner, line)| {
            let place = line.iter().position(|entry| entry.job.id == id)?;
            Some((owner.clone(), place))
        });
        let Some((owner, place)) = found else { return false };
        if let Some(line) = self.lines.get_mut(&owner) {
            line.remove(place);
            if line.is_empty() {
                self.lines.remove(&owner);
                self.turns.retain(|turn| *turn != owner);
            }
        }
        true
    }
}
