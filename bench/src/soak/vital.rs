//! The server's memory and descriptors over time, and whether they stay what they were.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};

use crate::client::{Client, request};

/// How much more resident memory there may be at the end, for what is fragmented and what is cached.
const MORE_MEMORY: f64 = 1.10;
const MORE_MEMORY_KIB: f64 = 4096.0;
/// How many more descriptors and threads there may be.
const MORE_DESCRIPTORS: u64 = 16;
const MORE_THREADS: u64 = 16;
/// The most that a sandbox which waits for a program holds. How many wait follows the demand.
const DESCRIPTORS_OF_A_SANDBOX: u64 = 32;

/// When it is taken to be idle.
const ALIKE: usize = 3;
const BETWEEN_LOOKS: Duration = Duration::from_millis(500);
const MAX_WAIT: Duration = Duration::from_mins(1);

/// How it is judged, for people.
pub(super) const RULE: &str = "after a third of the requests the server is warm, and is left alone until it \
    is idle; idle again after the last one it may have a tenth and 4 MiB more memory, 16 more descriptors \
    and 16 more threads, and 32 descriptors for each sandbox that waits for a program now and did not then";

/// The server at one moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    pub(super) memory_kib: u64,
    pub(super) descriptors: u64,
    pub(super) threads: u64,
    /// Sandboxes that wait for a program.
    pub(super) waiting: u64,
}

/// What is compared.
#[derive(Clone, Copy, Debug)]
pub(super) struct Comparison {
    pub(super) warm: Sample,
    pub(super) end: Sample,
}

impl Sample {
    /// Looks when nothing goes on any more: when three looks in a row find the same descriptors and threads.
    pub(super) fn of_idle(process: u32, client: &mut Client) -> anyhow::Result<Self> {
        let deadline = Instant::now() + MAX_WAIT;
        let mut last = Self::take(process, client)?;
        let mut alike = 0;
        while alike < ALIKE {
            ensure!(Instant::now() < deadline, "the server does not come to rest: {last:?}");
            std::thread::sleep(BETWEEN_LOOKS);
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

/// How many sandboxes wait, by the server's own metrics.
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
        let waiting = end.waiting.saturating_sub(warm.waiting) * DESCRIPTORS_OF_A_SANDBOX;
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
    fn a_little_more_is_flat_and_much_more_is_not() {
        let warm = sample(50_000, 100, 4);
        assert!(is_flat(warm, sample(58_000, 110, 4)));
        assert!(!is_flat(warm, sample(60_000, 100, 4)));
        assert!(!is_flat(warm, sample(50_000, 120, 4)));
    }

    #[test]
    fn sandboxes_that_wait_have_descriptors() {
        let warm = sample(50_000, 100, 4);
        assert!(is_flat(warm, sample(50_000, 150, 6)));
        assert!(!is_flat(warm, sample(50_000, 150, 4)));
    }
}
