//! Waiting runtimes of one shape, and how many of them are worth having.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Copies;
use super::slots::ReadySlot;
use super::warm::{Shape, Way};

/// As many as are kept of a shape that was used a second time.
const FIRST: usize = 2;
/// Without use for this long, one is enough.
const SHRINKS_AFTER: Duration = Duration::from_mins(1);
/// Without use for this long, none is.
const ENDS_AFTER: Duration = Duration::from_mins(10);
/// For so long after one was asked for in vain the next ones have to come quickly.
const HURRY: Duration = Duration::from_secs(2);
/// A runtime that could not be started is not tried again before.
const RETRIES_AFTER: Duration = Duration::from_mins(1);

/// What is known of one shape.
pub(crate) struct Shelf {
    pub(crate) shape: Arc<Shape>,
    pub(crate) ready: VecDeque<ReadySlot>,
    /// How many are being started.
    pub(crate) underway: usize,
    pub(crate) wanted: usize,
    pub(crate) hits: u64,
    pub(crate) misses: u64,
    pub(crate) last_use: Instant,
    /// How long it took to start the last one.
    pub(crate) start_time: Duration,
    /// When one was asked for in vain.
    last_miss: Option<Instant>,
    /// Why the last one could not be started, and when.
    pub(crate) failure: Option<(String, Instant)>,
}

impl Shelf {
    pub(crate) fn new(shape: Shape) -> Self {
        Self {
            shape: Arc::new(shape),
            ready: VecDeque::new(),
            underway: 0,
            wanted: 0,
            hits: 0,
            misses: 0,
            last_use: Instant::now(),
            start_time: Duration::ZERO,
            last_miss: None,
            failure: None,
        }
    }

    /// Takes one, and learns from how it went. A shape that is used once is not worth a process that
    /// waits; one that is asked for in vain is worth more of them.
    pub(crate) fn take(&mut self, most: usize) -> Option<ReadySlot> {
        self.last_use = Instant::now();
        let taken = self.ready.pop_front();
        if taken.is_some() {
            self.hits += 1;
            return taken;
        }
        self.misses += 1;
        if self.wanted > 0 {
            self.last_miss = Some(Instant::now());
        }
        self.wanted = match (self.wanted, self.hits + self.misses) {
            (0, 1) => 0,
            (0, _) => FIRST,
            (wanted, _) => wanted + 1,
        };
        self.wanted = self.wanted.min(most);
        None
    }

    /// How to start the next one: by itself, unless programs come faster than that takes.
    pub(crate) fn way(&self, copies: Copies) -> Way {
        let in_a_hurry = || self.last_miss.is_some_and(|at| at.elapsed() < HURRY);
        let is_copied = match copies {
            Copies::Never => false,
            Copies::InAHurry => in_a_hurry(),
            Copies::Always => true,
        };
        if is_copied { Way::Quickest } else { Way::Own }
    }

    /// How many are missing.
    pub(crate) fn deficit(&self) -> usize {
        let waits = self.failure.as_ref().is_some_and(|(_, at)| at.elapsed() < RETRIES_AFTER);
        if waits { 0 } else { self.wanted.saturating_sub(self.ready.len() + self.underway) }
    }

    /// What has been waiting for nothing.
    pub(crate) fn shrink(&mut self) -> Vec<ReadySlot> {
        let idle = self.last_use.elapsed();
        if idle >= ENDS_AFTER {
            self.wanted = 0;
        } else if idle >= SHRINKS_AFTER {
            self.wanted = self.wanted.min(1);
        }
        let kept = self.ready.len().min(self.wanted);
        self.ready.drain(kept..).collect()
    }

    /// Whether nothing would be lost with it.
    pub(crate) fn is_spent(&self) -> bool {
        self.underway == 0 && self.ready.is_empty() && self.last_use.elapsed() >= ENDS_AFTER
    }
}
