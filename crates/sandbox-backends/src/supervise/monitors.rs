//! Periodic checks of a running program besides its time limits: usage samples, kernel memory of
//! its network, and file locks.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use sandbox_core::UsageSample;

use super::lock_limit::{LockLimit, SAMPLE_INTERVAL};
use super::network_memory::NetworkMemory;
use super::supervised::Supervised;
use super::usage::Sampler;

/// The checks of one program; none of them runs before it has started.
pub(super) struct Monitors {
    sampler: Option<Sampler>,
    network_memory: Option<NetworkMemory>,
    lock_limit: Option<LockLimit>,
    /// When to start counting locks.
    lock_limit_start: Option<Instant>,
}

impl Monitors {
    /// Schedules the checks of a program that started now.
    pub(super) fn start(
        program: &impl Supervised,
        usage_interval: Option<Duration>,
        now: Instant,
    ) -> Self {
        Self {
            sampler: usage_interval.map(|interval| Sampler::new(interval, now)),
            network_memory: program.network_memory(now),
            lock_limit: None,
            lock_limit_start: Some(now + SAMPLE_INTERVAL),
        }
    }

    /// When the next usage sample is due.
    pub(super) fn next_sample(&self) -> Option<Instant> {
        self.sampler.as_ref().map(Sampler::next)
    }

    /// When the next limit is to be checked.
    pub(super) fn next_check(&self) -> Option<Instant> {
        let network = self.network_memory.as_ref().map(NetworkMemory::next);
        network.into_iter().chain(self.lock_limit_start).min()
    }

    /// Readable once the sandbox holds too many locks.
    pub(super) fn lock_alarm(&self) -> Option<BorrowedFd<'_>> {
        self.lock_limit.as_ref().map(LockLimit::alarm)
    }

    /// Takes a usage sample, if it is time.
    pub(super) fn sample(
        &mut self,
        now: Instant,
        program: &impl Supervised,
    ) -> Option<UsageSample> {
        let sampler = self.sampler.as_mut().filter(|sampler| sampler.next() <= now)?;
        sampler.take(now, &program.counters(), program.cpu_time())
    }

    /// Whether the network holds more kernel memory than allowed, if it is time to check.
    pub(super) fn exceeds_network_memory(&mut self, now: Instant) -> bool {
        let memory = self.network_memory.as_mut().filter(|memory| memory.next() <= now);
        memory.is_some_and(|memory| memory.is_over(now))
    }

    /// Starts to count the locks of the sandbox, if it is time.
    pub(super) fn limit_locks(
        &mut self,
        now: Instant,
        program: &impl Supervised,
    ) -> io::Result<()> {
        if self.lock_limit_start.is_some_and(|at| at <= now) {
            self.lock_limit_start = None;
            self.lock_limit = program.limit_locks()?;
        }
        Ok(())
    }
}
