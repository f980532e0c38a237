//! The monotonic clock, and setting the clocks of a time namespace to zero.

use std::os::fd::BorrowedFd;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::time::{ClockId, Timespec, clock_gettime};

/// Nanoseconds of the monotonic clock in this process's time namespace.
pub(crate) fn monotonic_nanos() -> u64 {
    nanos(clock_gettime(ClockId::Monotonic))
}

fn nanos(time: Timespec) -> u64 {
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000
        + u64::try_from(time.tv_nsec).unwrap_or(0)
}

/// Sets the clocks of the time namespace for future children to zero, which hides the host's
/// uptime. (A program can find the offset if it looks for it.) To be called once, before the first
/// child is in the namespace. `processes` is the host's `/proc`.
pub(crate) fn start_at_zero(processes: BorrowedFd<'_>) -> Result<(), Errno> {
    let monotonic = clock_gettime(ClockId::Monotonic).tv_sec;
    let boottime = clock_gettime(ClockId::Boottime).tv_sec;
    let offsets = format!("monotonic -{monotonic} 0\nboottime -{boottime} 0\n");
    let flags = OFlags::WRONLY | OFlags::CLOEXEC;
    let file = rustix::fs::openat(processes, "self/timens_offsets", flags, Mode::empty())?;
    rustix::io::write(file, offsets.as_bytes()).map(|_| ())
}
