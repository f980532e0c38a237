//! A pool of warm sandboxes with one specification, and its target size.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::ForkPolicy;
use super::slots::ReadySlot;
use super::warm::{StartMethod, WarmSpec};

/// Target size at the second use.
const INITIAL_SIZE: usize = 2;
/// After this time without use the target size is one.
const SHRINK_TIMEOUT: Duration = Duration::from_mins(1);
/// After this time without use the target size is zero.
const IDLE_TIMEOUT: Duration = Duration::from_mins(10);
/// Runtimes are forked for this long after a miss.
const BURST_WINDOW: Duration = Duration::from_secs(2);
/// How long to wait after a failed start.
const RETRY_INTERVAL: Duration = Duration::from_mins(1);

/// The sandboxes of one specification and their statistics.
pub(crate) struct WarmPool {
    pub(crate) spec: Arc<WarmSpec>,
    pub(crate) ready: VecDeque<ReadySlot>,
    /// Number of sandboxes being prepared.
    pub(crate) underway: usize,
    pub(crate) wanted: usize,
    pub(crate) hits: u64,
    pub(crate) misses: u64,
    pub(crate) last_use: Instant,
    /// How long the last preparation took.
    pub(crate) start_time: Duration,
    /// Time of the last miss of a pool that had a target size.
    last_miss: Option<Instant>,
    /// Why the last preparation failed, and when.
    pub(crate) failure: Option<(String, Instant)>,
}

impl WarmPool {
    pub(crate) fn new(spec: WarmSpec) -> Self {
        Self {
            spec: Arc::new(spec),
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

    /// Takes a sandbox and adapts the target size: the second use starts the pool, and each miss
    /// enlarges it.
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
            (0, _) => INITIAL_SIZE,
            (wanted, _) => wanted + 1,
        };
        self.wanted = self.wanted.min(most);
        None
    }

    /// How to start the next runtime: forked only while programs arrive faster than runtimes start.
    pub(crate) fn method(&self, fork_policy: ForkPolicy) -> StartMethod {
        let in_a_burst = || self.last_miss.is_some_and(|at| at.elapsed() < BURST_WINDOW);
        let is_forked = match fork_policy {
            ForkPolicy::Never => false,
            ForkPolicy::OnDemand => in_a_burst(),
            ForkPolicy::Always => true,
        };
        if is_forked { StartMethod::Fork } else { StartMethod::Fresh }
    }

    /// Number of missing sandboxes.
    pub(crate) fn deficit(&self) -> usize {
        let waits = self.failure.as_ref().is_some_and(|(_, at)| at.elapsed() < RETRY_INTERVAL);
        if waits { 0 } else { self.wanted.saturating_sub(self.ready.len() + self.underway) }
    }

    /// Removes sandboxes that exceed the target size after idle time.
    pub(crate) fn shrink(&mut self) -> Vec<ReadySlot> {
        let idle = self.last_use.elapsed();
        if idle >= IDLE_TIMEOUT {
            self.wanted = 0;
        } else if idle >= SHRINK_TIMEOUT {
            self.wanted = self.wanted.min(1);
        }
        let kept = self.ready.len().min(self.wanted);
        self.ready.drain(kept..).collect()
    }

    /// Whether the pool is empty and unused for long enough to be removed.
    pub(crate) fn is_expired(&self) -> bool {
        self.underway == 0 && self.ready.is_empty() && self.last_use.elapsed() >= IDLE_TIMEOUT
    }
}
