//! Periodic samples of a running program's resource usage.

use std::fs::File;
use std::io::Read as _;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::{Duration, Instant};

use sandbox_core::UsageSample;
use sandbox_linux::cgroup::{Cgroup, Usage};

use super::host::OWN_PROCESSES;

/// Takes samples at an interval.
pub(crate) struct Sampler {
    interval: Duration,
    next: Instant,
    init: Option<u32>,
}

impl Sampler {
    pub(crate) fn new(interval: Duration, now: Instant, init: BorrowedFd<'_>) -> Self {
        Self { interval, next: now + interval, init: process_id(init) }
    }

    /// When the next sample is due.
    pub(crate) fn next(&self) -> Instant {
        self.next
    }

    pub(crate) fn take(
        &mut self,
        now: Instant,
        cgroup: &dyn Cgroup,
        before: &Usage,
    ) -> Option<UsageSample> {
        // A late sample is not followed by a burst.
        self.next = now + self.interval;
        let usage = cgroup.usage().ok()?;
        let (read, written) = self.bytes_moved(cgroup);
        let cpu = usage.cpu_total.saturating_sub(before.cpu_total);
        Some(UsageSample {
            cpu_ms: u64::try_from(cpu.as_millis()).unwrap_or(u64::MAX),
            memory_kb: usage.memory_current / 1024,
            processes: usage.pids_current.saturating_sub(OWN_PROCESSES),
            io_read_bytes: read,
            io_write_bytes: written,
        })
    }

    /// Sums over the living processes and init, which inherits the counters of reaped ones.
    fn bytes_moved(&self, cgroup: &dyn Cgroup) -> (u64, u64) {
        let processes = cgroup.processes().unwrap_or_default();
        let all = processes.into_iter().chain(self.init);
        all.filter_map(bytes_moved_by).fold((0, 0), |sum, io| (sum.0 + io.0, sum.1 + io.1))
    }
}

/// Bytes read and written by a process and its reaped children.
pub(crate) fn bytes_moved_by(process: u32) -> Option<(u64, u64)> {
    let mut text = [0; 512];
    let count = File::open(format!("/proc/{process}/io")).ok()?.read(&mut text).ok()?;
    let text = std::str::from_utf8(&text[..count]).ok()?;
    let value = |name: &str| -> Option<u64> {
        text.lines().find_map(|line| line.strip_prefix(name))?.trim().parse().ok()
    };
    Some((value("rchar:")?, value("wchar:")?))
}

/// The PID behind a descriptor, in this process's namespace.
pub(crate) fn process_id(process: BorrowedFd<'_>) -> Option<u32> {
    let path = format!("/proc/self/fdinfo/{}", process.as_raw_fd());
    let text = std::fs::read_to_string(path).ok()?;
    text.lines().find_map(|line| line.strip_prefix("Pid:"))?.trim().parse().ok()
}

/// The PID of a process in the innermost of its PID namespaces.
pub(crate) fn id_inside(process: u32) -> Option<u32> {
    let text = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let ids = text.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
    ids.split_whitespace().last()?.parse().ok()
}
