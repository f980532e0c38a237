//! The text of control files, as pure functions.

use std::time::Duration;

/// A file that holds one number and a line feed.
pub(crate) fn number(text: &str) -> Option<u64> {
    text.trim_end().parse().ok()
}

/// A file that holds one number per line.
pub(crate) fn processes(text: &str) -> Option<Vec<u32>> {
    text.lines().map(|line| line.parse().ok()).collect()
}

/// The number behind a key in a file of `key number` lines, such as `memory.events`.
pub(crate) fn keyed(text: &str, key: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let (name, value) = line.split_once(' ')?;
        if name == key { value.trim_end().parse().ok() } else { None }
    })
}

/// The times in a v2 `cpu.stat`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct CpuStat {
    pub(crate) total: Duration,
    pub(crate) user: Option<Duration>,
    pub(crate) system: Option<Duration>,
}

pub(crate) fn cpu_stat(text: &str) -> Option<CpuStat> {
    let time = |key| keyed(text, key).map(Duration::from_micros);
    Some(CpuStat {
        total: time("usage_usec")?,
        user: time("user_usec"),
        system: time("system_usec"),
    })
}

/// The bytes read and written in a v2 `io.stat`, added up over all devices. The file is empty until
/// the first transfer, and a device that has seen none may have no counters behind it.
pub(crate) fn io_stat(text: &str) -> Option<(u64, u64)> {
    let (mut read, mut written) = (0, 0);
    for field in text.split_ascii_whitespace() {
        if let Some(bytes) = field.strip_prefix("rbytes=") {
            read += bytes.parse::<u64>().ok()?;
        } else if let Some(bytes) = field.strip_prefix("wbytes=") {
            written += bytes.parse::<u64>().ok()?;
        }
    }
    Some((read, written))
}

/// Whether a list of words separated by spaces, such as `cgroup.controllers`, holds a word.
pub(crate) fn lists(text: &str, word: &str) -> bool {
    text.split_ascii_whitespace().any(|listed| listed == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CPU_STAT: &str = "usage_usec 1500250\nuser_usec 1000000\nsystem_usec 500250\n\
        nice_usec 0\ncore_sched.force_idle_usec 0\nnr_periods 12\nnr_throttled 3\n\
        throttled_usec 240000\nnr_bursts 0\nburst_usec 0\n";
    const MEMORY_EVENTS: &str = "low 0\nhigh 0\nmax 41\noom 2\noom_kill 1\noom_group_kill 1\n\
        sock_throttled 0\n";

    #[test]
    fn cpu_stat_gives_total_user_and_system() {
        let stat = cpu_stat(CPU_STAT).unwrap();
        assert_eq!(stat.total, Duration::from_micros(1_500_250));
        assert_eq!(stat.user, Some(Duration::from_secs(1)));
        assert_eq!(stat.system, Some(Duration::from_micros(500_250)));
        assert_eq!(keyed(CPU_STAT, "nr_throttled"), Some(3));
        assert_eq!(cpu_stat("user_usec 1\n"), None);
    }

    #[test]
    fn a_key_is_matched_whole() {
        assert_eq!(keyed(MEMORY_EVENTS, "oom"), Some(2));
        assert_eq!(keyed(MEMORY_EVENTS, "oom_kill"), Some(1));
        assert_eq!(keyed(MEMORY_EVENTS, "kill"), None);
        assert_eq!(keyed("oom_kill_disable 0\nunder_oom 0\noom_kill 4\n", "oom_kill"), Some(4));
        assert_eq!(keyed("oom_kill lots\n", "oom_kill"), None);
    }

    #[test]
    fn io_stat_adds_up_devices_and_may_be_empty() {
        let text = "8:16 rbytes=1459200 wbytes=314773504 rios=192 wios=353 dbytes=0 dios=0\n\
            253:0 \n8:0 rbytes=90430464 wbytes=299008000 rios=8950 wios=1252 dbytes=5 dios=1\n";
        assert_eq!(io_stat(text), Some((91_889_664, 613_781_504)));
        assert_eq!(io_stat(""), Some((0, 0)));
        assert_eq!(io_stat("8:0 rbytes=x"), None);
    }

    #[test]
    fn numbers_and_lists_are_strict() {
        assert_eq!(number("18446744073709551615\n"), Some(u64::MAX));
        assert_eq!(number("max\n"), None);
        assert_eq!(processes("1\n22\n"), Some(vec![1, 22]));
        assert_eq!(processes(""), Some(vec![]));
        assert_eq!(processes("1\nx\n"), None);
        assert!(lists("cpuset cpu io memory pids\n", "cpu"));
        assert!(!lists("cpuset io\n", "cpu"));
    }
}
