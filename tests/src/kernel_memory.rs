//! Kernel memory that a program makes the host use, for the tests under cgroup v1 and v2.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use std::{fs, thread};

/// A program that takes kernel memory by the route that its argument names.
pub const SOURCE: &str = include_str!("../conformance/kernel_memory.c");

/// The routes that [`SOURCE`] knows, but for [`OPEN_ROUTES`] and `nothing`, which shows what a sandbox
/// takes by itself.
pub const ROUTES: &[&str] = &[
    "record_locks",
    "file_locks",
    "access_lists",
    "default_lists",
    "attributes",
    "filters",
    "pipes",
    "lent_pages",
    "huge_pages",
    "event_polls",
    "timer_files",
    "timers",
    "signals",
    "messages",
    "semaphores",
    "local_sockets",
    "file_events",
    "links",
    "missing_names",
    "page_tables",
    "message_pages",
    "mapping_pages",
    "directories",
    "local_connections",
];

/// Routes that may exceed the bound, as SECURITY.md tells.
pub const OPEN_ROUTES: &[&str] = &["local_message_pages", "pages_of_many_kinds", "orphaned_locks"];

/// The memory limit of the program.
pub const MEMORY_LIMIT_MIB: u64 = 64;
/// By how much the host's memory may grow while the program runs.
pub const MAX_GROWTH_MIB: u64 = MEMORY_LIMIT_MIB * 5 / 4;

/// Samples in a row that all have to show a growth.
const SAMPLES_IN_A_ROW: usize = 40;
const SAMPLE_INTERVAL: Duration = Duration::from_millis(5);

/// What is in use at one moment, in KiB.
#[derive(Clone, Copy, Debug)]
pub struct Usage {
    /// Memory of the kernel that cannot be reclaimed.
    pub kernel_kib: u64,
    /// All memory that is not free. Useful only where nothing else runs.
    pub used_kib: u64,
}

/// By how much the memory in use grew, in MiB.
#[derive(Clone, Copy, Debug)]
pub struct Growth {
    /// Of [`Usage::kernel_kib`].
    pub kernel_mib: u64,
    /// Of [`Usage::used_kib`].
    pub used_mib: u64,
}

/// Reads what is in use now.
pub fn usage() -> Usage {
    let text = fs::read_to_string("/proc/meminfo").expect("/proc is mounted");
    let sum = |names: &[&str]| -> u64 {
        let values = text.lines().filter_map(|line| {
            let (name, value) = line.split_once(':')?;
            names.contains(&name).then(|| value.trim().trim_end_matches(" kB"))
        });
        values.map(|value| value.parse::<u64>().expect("a number of KiB")).sum()
    };
    Usage {
        kernel_kib: sum(&["SUnreclaim", "VmallocUsed", "PageTables", "KernelStack", "Percpu"]),
        used_kib: sum(&["MemTotal"]) - sum(&["MemFree"]),
    }
}

/// Samples the memory in use while `run` runs, and gives back by how much it grew for a while.
pub fn growth<T>(run: impl FnOnce() -> T) -> (Growth, T) {
    let is_over = AtomicBool::new(false);
    let before = usage();
    thread::scope(|scope| {
        let sampling = scope.spawn(|| {
            let mut samples = Vec::new();
            while !is_over.load(Ordering::Relaxed) || samples.len() < SAMPLES_IN_A_ROW {
                samples.push(usage());
                thread::sleep(SAMPLE_INTERVAL);
            }
            samples
        });
        let result = run();
        is_over.store(true, Ordering::Relaxed);
        let samples = sampling.join().expect("sampling does not fail");
        let growth = Growth {
            kernel_mib: held(&samples, |usage| usage.kernel_kib).saturating_sub(before.kernel_kib)
                >> 10,
            used_mib: held(&samples, |usage| usage.used_kib).saturating_sub(before.used_kib) >> 10,
        };
        (growth, result)
    })
}

/// The most that was in use in some samples in a row.
fn held(samples: &[Usage], value: impl Fn(&Usage) -> u64) -> u64 {
    let values: Vec<_> = samples.iter().map(value).collect();
    let least = values.windows(SAMPLES_IN_A_ROW).filter_map(|values| values.iter().copied().min());
    least.max().expect("there are that many samples")
}
