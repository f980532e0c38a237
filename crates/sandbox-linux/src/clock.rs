//! Clocks that only go forward, and that start at zero in a sandbox.

use rustix::io::Errno;
use rustix::time::{ClockId, Timespec, clock_gettime};

/// Nanoseconds on the monotonic clock of this process's time namespace.
pub(crate) fn monotonic_nanos() -> u64 {
    nanos(clock_gettime(ClockId::Monotonic))
}

fn nanos(time: Timespec) -> u64 {
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000
        + u64::try_from(time.tv_nsec).unwrap_or(0)
}

/// Sets the clocks of the time namespace that this process's children will be in back to the start, so
/// that a program sees clocks of its own. (The offset itself can be read by a program that looks for
/// it.) To be called once, after the namespace was made and before a child is in it.
pub(crate) fn start_at_zero() -> Result<(), Errno> {
    let monotonic = clock_gettime(ClockId::Monotonic).tv_sec;
    let boottime = clock_gettime(ClockId::Boottime).tv_sec;
    let offsets = format!("monotonic -{monotonic} 0\nboottime -{boottime} 0\n");
    std::fs::write("/proc/self/timens_offsets", offsets)
        .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
}
