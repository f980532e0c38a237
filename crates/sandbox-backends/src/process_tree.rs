//! A process's descendants and their CPU time, as the host's kernel counts it.

use std::fs;
use std::time::Duration;

/// Processes that are looked at. A sandbox has fewer.
const MAX_PROCESSES: usize = 1 << 16;

/// Children of all threads of a process, as far as none ends meanwhile.
pub(crate) fn children(process: u32) -> Vec<u32> {
    let threads = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let lists =
        threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    let ids = lists.flat_map(|list| {
        list.split_ascii_whitespace().filter_map(|id| id.parse().ok()).collect::<Vec<u32>>()
    });
    ids.collect()
}

/// All descendants of a process.
pub(crate) fn descendants(process: u32) -> Vec<u32> {
    let mut all = children(process);
    let mut next = 0;
    while let Some(process) = all.get(next)
        && next < MAX_PROCESSES
    {
        next += 1;
        all.extend(children(*process));
    }
    all
}

/// CPU time of all descendants, without the process itself. Those that nobody waited for are
/// missing once they have ended; the wall-clock limit and the CPU limit of the sandbox bound them.
pub(crate) fn cpu_time_below(process: u32) -> Duration {
    let mut ticks = times(process).map_or(0, |times| times.waited_for);
    for process in descendants(process) {
        ticks += times(process).map_or(0, |times| times.own + times.waited_for);
    }
    let each = rustix::param::clock_ticks_per_second().max(1);
    Duration::from_millis(ticks.saturating_mul(1000) / each)
}

/// CPU time in clock ticks.
#[derive(Debug, PartialEq, Eq)]
struct Times {
    own: u64,
    /// Of descendants that ended and were waited for.
    waited_for: u64,
}

fn times(process: u32) -> Option<Times> {
    parse(&fs::read_to_string(format!("/proc/{process}/stat")).ok()?)
}

/// Parses a line of `/proc/PID/stat`.
fn parse(line: &str) -> Option<Times> {
    const USER: usize = 11;
    // The name before the last bracket may contain anything.
    let mut fields = line.rsplit_once(')')?.1.split_ascii_whitespace().skip(USER);
    let mut sum = || -> Option<u64> {
        Some(fields.next()?.parse::<u64>().ok()? + fields.next()?.parse::<u64>().ok()?)
    };
    Some(Times { own: sum()?, waited_for: sum()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_found_behind_any_name() {
        let line = "7 (a) b) S 1 7 7 0 -1 4194560 9 8 7 6 10 20 3 4 20 0 1 0 55";
        assert_eq!(parse(line), Some(Times { own: 30, waited_for: 7 }));
        assert_eq!(parse("7 (a) S 1"), None);
    }

    #[test]
    fn a_child_is_listed() {
        let child = std::process::Command::new("sleep").arg("60").spawn();
        let mut child = child.expect("every host has sleep");
        assert!(children(std::process::id()).contains(&child.id()));
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
