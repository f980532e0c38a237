//! The server's memory, descriptors and threads over time, and whether they grow.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};

use crate::client::{Client, request};

/// Allowed growth of resident memory, for fragmentation and caches.
const MORE_MEMORY: f64 = 1.10;
const MORE_MEMORY_KIB: f64 = 4096.0;
/// Allowed growth of descriptors and threads.
const MORE_DESCRIPTORS: u64 = 16;
const MORE_THREADS: u64 = 16;
/// Maximum number of descriptors of one prepared sandbox. The number of prepared sandboxes follows the demand.
const DESCRIPTORS_PER_SANDBOX: u64 = 32;

/// The server counts as idle after this many equal samples.
const EQUAL_SAMPLES: usize = 3;
const SAMPLE_INTERVAL: Duration = Duration::from_millis(500);
const IDLE_TIMEOUT: Duration = Duration::from_mins(1);

/// The criterion, as the results print it.
pub(super) const RULE: &str = "after a third of the requests the server is warm, and is left alone until it \
    is idle; idle again after the last one it may have a tenth and 4 MiB more memory, 16 more descriptors \
    and 16 more threads, and 32 descriptors for each sandbox that waits for a program now and did not then";

/// The figures of the server at one moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    pub(super) memory_kib: u64,
    pub(super) descriptors: u64,
    pub(super) threads: u64,
    /// Number of prepared sandboxes.
    pub(super) waiting: u64,
}

/// The samples that are compared.
#[derive(Clone, Copy, Debug)]
pub(super) struct Comparison {
    pub(super) warm: Sample,
    pub(super) end: Sample,
}

impl Sample {
    /// Samples an idle server: three samples in a row have the same descriptors, threads and prepared sandboxes.
    pub(super) fn of_idle(process: u32, client: &mut Client) -> anyhow::Result<Self> {
        let deadline = Instant::now() + IDLE_TIMEOUT;
        let mut last = Self::take(process, client)?;
        let mut alike = 0;
        while alike < EQUAL_SAMPLES {
            ensure!(Instant::now() < deadline, "the server does not become idle: {last:?}");
            std::thread::sleep(SAMPLE_INTERVAL);
            let next = Self::take(process, client)?;
            let is_alike = |sample: &Self| (sample.descriptors, sample.threads, sample.waiting);
            alike = if is_alike(&next) == is_alike(&last) { alike + 1 } else { 0 };
            last = next;
        }
        Ok(last)
    }

    fn take(process: u32, client: &mut Client) -> anyhow::Result<Self> {
        let folder = PathBuf::from(format!("/proc/{process}"));
        let status =
            std::fs::read_to_string(folder.join("status")).context("look at the server")?;
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.trim_start_matches(':').split_whitespace().next()?.parse().ok()
        };
        let descriptors = std::fs::read_dir(folder.join("fd")).context("count descriptors")?;
        Ok(Self {
            memory_kib: field("VmRSS").context("its status has no VmRSS")?,
            descriptors: descriptors.count() as u64,
            threads: field("Threads").context("its status has no Threads")?,
            waiting: waiting(client)?,
        })
    }
}

/// The number of prepared sandboxes, from the server's metrics.
fn waiting(client: &mut Client) -> anyhow::Result<u64> {
    let answer = client.exchange(&request("GET", "/metrics", &[], b""))?;
    let text = String::from_utf8(answer.body).context("read the metrics")?;
    let gauges = ["sandboxd_pool_ready", "sandboxd_pool_loaded", "sandboxd_warm_ready"];
    let lines = text.lines().filter(|line| gauges.iter().any(|gauge| line.starts_with(gauge)));
    let values =
        lines.map(|line| line.rsplit(' ').next().and_then(|value| value.parse::<u64>().ok()));
    values.sum::<Option<u64>>().context("the metrics do not say how many sandboxes wait")
}

impl Comparison {
    pub(super) fn is_flat(&self) -> bool {
        let Self { warm, end } = self;
        #[expect(clippy::cast_precision_loss, reason = "no machine has that much memory")]
        let kib = |sample: &Sample| sample.memory_kib as f64;
        let waiting = end.waiting.saturating_sub(warm.waiting) * DESCRIPTORS_PER_SANDBOX;
        kib(end) <= kib(warm) * MORE_MEMORY + MORE_MEMORY_KIB
            && end.descriptors <= warm.descriptors + MORE_DESCRIPTORS + waiting
            && end.threads <= warm.threads + MORE_THREADS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(memory_kib: u64, descriptors: u64, waiting: u64) -> Sample {
        Sample { memory_kib, descriptors, threads: 9, waiting }
    }

    fn is_flat(warm: Sample, end: Sample) -> bool {
        Comparison { warm, end }.is_flat()
    }

    #[test]
    fn growth_within_the_allowance_is_flat() {
        let warm = sample(50_000, 100, 4);
        assert!(is_flat(warm, sample(58_000, 110, 4)));
        assert!(!is_flat(warm, sample(60_000, 100, 4)));
        assert!(!is_flat(warm, sample(50_000, 120, 4)));
    }

    #[test]
    fn more_prepared_sandboxes_may_hold_more_descriptors() {
        let warm = sample(50_000, 100, 4);
        assert!(is_flat(warm, sample(50_000, 150, 6)));
        assert!(!is_flat(warm, sample(50_000, 150, 4)));
    }
}
