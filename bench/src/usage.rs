//! Memory, as the kernel counts it.

use anyhow::Context;
use sandbox_tests::process::descendants;

/// The host's memory at one moment, in KiB.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HostMemory {
    pub(crate) used: f64,
    pub(crate) available: f64,
}

impl HostMemory {
    pub(crate) fn now() -> anyhow::Result<Self> {
        Self::read(&std::fs::read_to_string("/proc/meminfo")?)
    }

    fn read(text: &str) -> anyhow::Result<Self> {
        let field = |name: &str| -> anyhow::Result<f64> {
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            let line = line.with_context(|| format!("no {name} in /proc/meminfo"))?;
            Ok(line.trim().trim_end_matches(" kB").parse()?)
        };
        // Pages of files can be had back at once; those of tmpfs count as such a page, and cannot.
        let cached =
            field("Buffers")? + field("Cached")? + field("SReclaimable")? - field("Shmem")?;
        let used = field("MemTotal")? - field("MemFree")? - cached;
        Ok(Self { used, available: field("MemAvailable")? })
    }
}

/// What everything has that this process started: each one's share of what it has in common with others.
pub(crate) fn below_kib() -> u64 {
    descendants().iter().map(|process| proportional_kib(process.id)).sum()
}

/// Nothing if the process is gone.
fn proportional_kib(process: i32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{process}/smaps_rollup")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_files_hold_is_not_used_and_what_tmpfs_holds_is() {
        let text = "MemTotal: 1000 kB\nMemFree: 100 kB\nMemAvailable: 500 kB\nBuffers: 50 kB\n\
                    Cached: 400 kB\nShmem: 30 kB\nSReclaimable: 20 kB\n";
        let memory = HostMemory::read(text).expect("it has every field");
        assert!((memory.used - 460.0).abs() < 1e-9);
        assert!((memory.available - 500.0).abs() < 1e-9);
    }

    #[test]
    fn the_host_has_every_field() {
        let memory = HostMemory::now().expect("/proc/meminfo can be read");
        assert!(memory.used > 0.0 && memory.available > 0.0);
    }
}
