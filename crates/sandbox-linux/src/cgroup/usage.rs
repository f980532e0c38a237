//! Resource usage of a cgroup.

use std::time::Duration;

/// Resource usage since the cgroup was created, or since the last reset for the memory peak.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// CPU time of all members, including dead ones. Zero if CPU time is not counted.
    pub cpu_total: Duration,
    /// CPU time in user mode.
    pub cpu_user: Option<Duration>,
    /// CPU time in the kernel.
    pub cpu_system: Option<Duration>,
    /// Memory charged now, including page cache and tmpfs.
    pub memory_current: u64,
    /// Peak of the memory charged.
    pub memory_peak: Option<u64>,
    /// Processes and threads now.
    pub pids_current: u64,
    /// Peak number of processes and threads.
    pub pids_peak: Option<u64>,
    /// Bytes read from block devices. Only on v2.
    pub io_read_bytes: Option<u64>,
    /// Bytes written to block devices. Only on v2: v1 cannot attribute buffered writes.
    pub io_write_bytes: Option<u64>,
}
