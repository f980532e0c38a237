//! What a cgroup has used.

use std::time::Duration;

/// What a cgroup has used since it was made, or since the last reset for the memory peak.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// CPU time of all members, dead ones included. Zero where CPU time is not counted.
    pub cpu_total: Duration,
    /// The part of it spent in programs.
    pub cpu_user: Option<Duration>,
    /// The part of it spent in the kernel on their behalf.
    pub cpu_system: Option<Duration>,
    /// Memory charged now, page cache and tmpfs included.
    pub memory_current: u64,
    /// The most memory ever charged at one time.
    pub memory_peak: Option<u64>,
    /// Processes and threads now.
    pub pids_current: u64,
    /// The most processes and threads at one time.
    pub pids_peak: Option<u64>,
    /// Bytes read from block devices. Only v2 tells.
    pub io_read_bytes: Option<u64>,
    /// Bytes written to block devices. Only v2 tells: v1 cannot say whose a buffered write was.
    pub io_write_bytes: Option<u64>,
}
