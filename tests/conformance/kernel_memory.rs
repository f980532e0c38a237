//! Ways to have the kernel keep memory that a program's limit does not count.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use std::{fs, thread};

use sandbox::{Sandbox, Status};

use crate::table::{c, mib, millis};

const ROUTES: &[&str] = &[
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
];
const LIMIT_MIB: u64 = 64;
/// Samples in a row that all have to show a growth.
const IN_A_ROW: usize = 40;

/// What the kernel uses for itself and cannot give back on demand, in KiB.
fn kernel_memory() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap();
    let counted = ["SUnreclaim:", "VmallocUsed:", "PageTables:", "KernelStack:", "Percpu:"];
    let values = text.lines().filter(|line| counted.iter().any(|name| line.starts_with(name)));
    values.map(|line| line.split_ascii_whitespace().nth(1).unwrap().parse::<u64>().unwrap()).sum()
}

/// By how much the kernel's memory grew while this program ran, in MiB, and how it ended.
fn growth(sandbox: &Sandbox, route: &str) -> (u64, Status) {
    let is_over = AtomicBool::new(false);
    let before = kernel_memory();
    thread::scope(|scope| {
        let measuring = scope.spawn(|| {
            let mut samples = Vec::new();
            while !is_over.load(Ordering::Relaxed) || samples.len() < IN_A_ROW {
                samples.push(kernel_memory());
                thread::sleep(Duration::from_millis(5));
            }
            samples
        });
        let limits = limits!(with_memory(mib(LIMIT_MIB)), with_wall_time(millis(20_000)));
        let request = c(include_str!("kernel_memory.c")).args([route]).limits(limits);
        let report = sandbox.execute(request.build().unwrap()).unwrap();
        is_over.store(true, Ordering::Relaxed);
        let samples = measuring.join().unwrap();
        let held = samples.windows(IN_A_ROW).filter_map(|samples| samples.iter().min()).max();
        (held.unwrap().saturating_sub(before) / 1024, report.status)
    })
}

#[test]
fn no_kernel_memory_leaks_past_the_limit_by_any_known_route() {
    let sandbox = Sandbox::new().unwrap();
    // Once, so that it is compiled.
    let (by_itself, status) = growth(&sandbox, "nothing");
    assert_eq!(status, Status::Completed);
    let mut over = Vec::new();
    for route in ROUTES {
        let (grown, status) = growth(&sandbox, route);
        assert!(matches!(status, Status::Completed | Status::MemoryLimit), "{route}: {status:?}");
        if grown > LIMIT_MIB * 5 / 4 {
            over.push(format!("{route}: {grown} MiB, {by_itself} MiB by itself, {status:?}"));
        }
    }
    assert!(over.is_empty(), "{over:#?}");
}
