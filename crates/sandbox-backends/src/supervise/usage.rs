//! The counters of a sandbox, and samples of them while the program runs.

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use sandbox_core::UsageSample;
use sandbox_linux::cgroup::{Cgroup, Usage};

use crate::process::{bytes_moved_by, process_id};

/// A cgroup, and what in it is not the program's.
#[derive(Clone, Copy)]
pub(crate) struct Counters<'a> {
    pub(crate) cgroup: &'a dyn Cgroup,
    /// What was counted before the program started.
    pub(crate) before: &'a Usage,
    /// Number of other processes that are counted with the program's; `None` if unknown.
    pub(crate) own_processes: Option<u64>,
    /// Memory that was in use before the program started and that no limit of it covers.
    pub(crate) own_memory: u64,
    /// A process in it whose input and output are not the program's.
    pub(crate) agent: Option<u32>,
    /// A process that inherits the input and output of those it reaps.
    pub(crate) init: Option<BorrowedFd<'a>>,
}

impl Counters<'_> {
    /// CPU time since the program started.
    pub(crate) fn cpu_time(&self) -> Duration {
        let total = self.cgroup.cpu_total().unwrap_or_default();
        total.saturating_sub(self.before.cpu_total)
    }
}

/// Takes samples at an interval.
pub(super) struct Sampler {
    interval: Duration,
    next: Instant,
    /// The last reported bytes read and written.
    moved: (u64, u64),
}

impl Sampler {
    pub(super) fn new(interval: Duration, now: Instant) -> Self {
        Self { interval, next: now + interval, moved: (0, 0) }
    }

    /// When the next sample is due.
    pub(super) fn next(&self) -> Instant {
        self.next
    }

    pub(super) fn take(
        &mut self,
        now: Instant,
        counters: &Counters<'_>,
        cpu_time: Duration,
    ) -> Option<UsageSample> {
        // A late sample is not followed by a burst.
        self.next = now + self.interval;
        let usage = counters.cgroup.usage().ok()?;
        if counters.own_processes.is_some() {
            let mut processes = counters.cgroup.processes().unwrap_or_default();
            processes.retain(|process| Some(*process) != counters.agent);
            if processes.is_empty() && counters.agent.is_some() {
                // The program has ended, and the agent is about to report it.
                return None;
            }
            let init = counters.init.and_then(process_id);
            processes.extend(init.filter(|init| !processes.contains(init)));
            self.add_moved(processes);
        }
        // At least one process is the program's.
        let own = counters.own_processes.unwrap_or(usage.pids_current.saturating_sub(1));
        Some(UsageSample {
            cpu_ms: u64::try_from(cpu_time.as_millis()).unwrap_or(u64::MAX),
            memory_kb: usage.memory_current.saturating_sub(counters.own_memory) / 1024,
            processes: usage.pids_current.saturating_sub(own),
            io_read_bytes: self.moved.0,
            io_write_bytes: self.moved.1,
        })
    }

    /// Sums over the living processes. The final numbers are known at the end; until then values
    /// never decrease.
    fn add_moved(&mut self, processes: Vec<u32>) {
        let moved = processes.into_iter().filter_map(bytes_moved_by);
        let sum = moved.fold((0, 0), |sum: (u64, u64), io| (sum.0 + io.0, sum.1 + io.1));
        self.moved = (self.moved.0.max(sum.0), self.moved.1.max(sum.1));
    }
}
