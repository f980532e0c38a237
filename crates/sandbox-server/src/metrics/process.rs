//! Metrics of the server process, under the standard names of Prometheus clients.

use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use rustix::param::{clock_ticks_per_second, page_size};
use rustix::process::{Resource, getrlimit};

use super::{gauge_value, metric};

/// The metrics, in a separate registry because their names have another prefix.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) registry: Registry,
    cpu_seconds: Counter<f64, AtomicU64>,
    open_fds: Gauge,
    max_fds: Gauge,
    resident_memory: Gauge,
    virtual_memory: Gauge,
    threads: Gauge,
    start_time: Gauge<f64, AtomicU64>,
}

/// Fields of `/proc/self/stat`, numbered as in proc(5).
#[derive(Debug, PartialEq)]
struct Stat {
    cpu_ticks: u64,
    threads: u64,
    start_ticks: u64,
    virtual_bytes: u64,
    resident_pages: u64,
}

impl Process {
    pub(super) fn new() -> Self {
        let mut all = Registry::with_prefix("process");
        let to = &mut all;
        Self {
            cpu_seconds: metric(
                to,
                "cpu_seconds",
                "CPU time of the server, without sandboxed programs",
            ),
            open_fds: metric(to, "open_fds", "Open file descriptors"),
            max_fds: metric(to, "max_fds", "Maximum number of open file descriptors"),
            resident_memory: metric(to, "resident_memory_bytes", "Resident memory of the server"),
            virtual_memory: metric(to, "virtual_memory_bytes", "Virtual memory of the server"),
            threads: metric(to, "threads", "Threads of the server"),
            start_time: metric(
                to,
                "start_time_seconds",
                "Start time of the server, in seconds since 1970",
            ),
            registry: all,
        }
    }

    /// Updates the metrics. Those that cannot be read keep their values.
    #[expect(clippy::cast_precision_loss, reason = "nothing here comes near 2^52")]
    pub(super) fn measure(&self) {
        let ticks = clock_ticks_per_second() as f64;
        if let Ok(entries) = fs::read_dir("/proc/self/fd") {
            // Do not count the descriptor of the directory itself.
            self.open_fds.set(gauge_value((entries.count() as u64).saturating_sub(1)));
        }
        let limit = getrlimit(Resource::Nofile).current;
        self.max_fds.set(limit.map_or(i64::MAX, gauge_value));
        if let Some(stat) = fs::read_to_string("/proc/self/stat").ok().and_then(|text| parse(&text))
        {
            let seconds = stat.cpu_ticks as f64 / ticks;
            self.cpu_seconds.inner().store(seconds.to_bits(), Ordering::Relaxed);
            self.threads.set(gauge_value(stat.threads));
            self.virtual_memory.set(gauge_value(stat.virtual_bytes));
            self.resident_memory.set(gauge_value(stat.resident_pages * page_size() as u64));
            if let Some(boot) = boot_time() {
                self.start_time.set(boot as f64 + stat.start_ticks as f64 / ticks);
            }
        }
    }
}

fn parse(stat: &str) -> Option<Stat> {
    // The second field is the process name, which can contain spaces and parentheses.
    let (_, rest) = stat.rsplit_once(") ")?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
    Some(Stat {
        cpu_ticks: field(14)? + field(15)?,
        threads: field(20)?,
        start_ticks: field(22)?,
        virtual_bytes: field(23)?,
        resident_pages: field(24)?,
    })
}

/// The boot time, in seconds since 1970.
fn boot_time() -> Option<u64> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    stat.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_name_with_parentheses_is_skipped() {
        let text = "7 (a) b) S 1 7 7 0 -1 4194304 100 0 0 0 30 12 0 0 20 0 5 0 900 4096 3 1 1 1";
        let expected = Stat {
            cpu_ticks: 42,
            threads: 5,
            start_ticks: 900,
            virtual_bytes: 4096,
            resident_pages: 3,
        };
        assert_eq!(parse(text), Some(expected));
        assert_eq!(parse("7 (a) S 1"), None);
    }

    #[test]
    fn this_process_is_measured() {
        let process = Process::new();
        process.measure();
        let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs_f64();
        assert!((now - 3600.0..now + 2.0).contains(&process.start_time.get()));
        assert!(process.resident_memory.get() > 100_000);
        let before = process.open_fds.get();
        let files: Vec<_> = (0..10).map(|_| fs::File::open("/dev/null").unwrap()).collect();
        process.measure();
        assert_eq!(process.open_fds.get(), before + 10);
        drop(files);
    }
}
