//! The cgroup around all sandboxes of one supervisor. If sandboxes use up a resource beyond their
//! own limits, this protects the supervisor and the host. See docs/adr/0029.

use std::path::Path;

/// Limits on all sandboxes of one supervisor together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OuterLimits {
    /// Bytes of memory.
    pub memory_bytes: u64,
    /// Processes and threads.
    pub pids: u64,
}

/// Minimum memory that is reserved for the supervisor and the host.
const MIN_MEMORY_RESERVE: u64 = 256 << 20;
/// Minimum number of processes that is reserved: enough to log in.
const MIN_PIDS_RESERVE: u64 = 1024;
/// The reserve is at least this fraction of the total.
const RESERVE_DIVISOR: u64 = 10;
/// The kernel's default maximum of processes, if the actual one is unknown.
const ASSUMED_PIDS: u64 = 32_768;

impl OuterLimits {
    /// The memory and processes of this machine, or of its container, less a tenth.
    pub fn of_host() -> OuterLimits {
        let system = rustix::system::sysinfo();
        let total = system.totalram.saturating_mul(system.mem_unit.into());
        let read = |path: &str| read_number(Path::new(path)).unwrap_or(ASSUMED_PIDS);
        let pids = read("/proc/sys/kernel/pid_max").min(read("/proc/sys/kernel/threads-max"));
        OuterLimits {
            memory_bytes: without_reserve(total, MIN_MEMORY_RESERVE),
            pids: without_reserve(pids, MIN_PIDS_RESERVE),
        }
    }

    /// Lowers the memory to that of the parent cgroup, less the reserve.
    pub(super) fn within(self, enclosing: impl Iterator<Item = u64>) -> OuterLimits {
        let smallest = enclosing.min().unwrap_or(u64::MAX);
        let memory_bytes = self.memory_bytes.min(without_reserve(smallest, MIN_MEMORY_RESERVE));
        OuterLimits { memory_bytes, ..self }
    }
}

/// The limits in files of this name, here and in the parent cgroups.
pub(super) fn limits_above(directory: &Path, file: &str) -> impl Iterator<Item = u64> {
    directory.ancestors().filter_map(move |above| read_number(&above.join(file)))
}

fn read_number(path: &Path) -> Option<u64> {
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// If there is little, half is left.
fn without_reserve(total: u64, at_least: u64) -> u64 {
    let reserve = (total / RESERVE_DIVISOR).max(at_least);
    total - reserve.min(total / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_reserved_for_the_host() {
        let mib = 1 << 20;
        assert_eq!(without_reserve(10_000 * mib, MIN_MEMORY_RESERVE), 9_000 * mib);
        assert_eq!(without_reserve(1024 * mib, MIN_MEMORY_RESERVE), 768 * mib);
        assert_eq!(without_reserve(100 * mib, MIN_MEMORY_RESERVE), 50 * mib);
        assert_eq!(without_reserve(32_768, MIN_PIDS_RESERVE), 32_768 - 3_276);
    }

    #[test]
    fn the_smallest_limit_around_counts() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("service");
        std::fs::create_dir(&inner).unwrap();
        std::fs::write(folder.path().join("memory.max"), "4294967296\n").unwrap();
        std::fs::write(inner.join("memory.max"), "max\n").unwrap();
        let limits = OuterLimits { memory_bytes: 1 << 40, pids: 100 };
        let limits = limits.within(limits_above(&inner, "memory.max"));
        assert_eq!(limits.memory_bytes, (4 << 30) - (4 << 30) / 10);
        assert_eq!(limits.within(std::iter::empty()), limits);
    }
}
