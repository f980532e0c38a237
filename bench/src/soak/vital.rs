//! The server's memory and descriptors over time, and whether they stay what they were.

use std::path::PathBuf;

use anyhow::Context;

use crate::client::{Client, request};

/// How much more resident memory there may be at the end, for what is fragmented and what is cached.
const MORE_MEMORY: f64 = 1.10;
const MORE_MEMORY_KIB: f64 = 4096.0;
/// How many more descriptors and threads there may be: how many programs run at a moment is chance.
const MORE_DESCRIPTORS: u64 = 16;
const MORE_THREADS: u64 = 16;
/// The most that a sandbox which waits for a program holds. How many wait follows the demand.
const DESCRIPTORS_OF_A_SANDBOX: u64 = 32;

/// How it is judged, for people.
pub(super) const RULE: &str = "after a third of the requests the server is warm; the median of the \
    samples of the next sixth is compared with that of the last sixth, which may have a tenth and 4 MiB \
    more memory, 16 more descriptors and 16 more threads, and 32 descriptors for each sandbox that waits \
    for a program now and did not then";

/// The server at one moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    /// Requests that were answered by then.
    pub(super) answered: usize,
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
    pub(super) fn take(process: u32, answered: usize, client: &mut Client) -> anyhow::Result<Self> {
        let folder = PathBuf::from(format!("/proc/{process}"));
        let status =
            std::fs::read_to_string(folder.join("status")).context("look at the server")?;
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.trim_start_matches(':').split_whitespace().next()?.parse().ok()
        };
        let descriptors = std::fs::read_dir(folder.join("fd")).context("count descriptors")?;
        Ok(Self {
            answered,
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
    /// Compares the sixth after the first third with the last one; none if there are too few samples.
    pub(super) fn of(samples: &[Sample], requests: usize) -> Option<Self> {
        let between = |from: usize, to: usize| {
            let part = samples.iter().copied();
            let part =
                part.filter(|sample| (from..=to).contains(&(sample.answered * 6 / requests)));
            median(&part.collect::<Vec<_>>())
        };
        Some(Self { warm: between(2, 2)?, end: between(5, 6)? })
    }

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

/// The median of each figure.
fn median(samples: &[Sample]) -> Option<Sample> {
    let middle = |figure: fn(&Sample) -> u64| {
        let mut figures: Vec<u64> = samples.iter().map(figure).collect();
        figures.sort_unstable();
        figures.get(figures.len() / 2).copied()
    };
    Some(Sample {
        answered: samples.last()?.answered,
        memory_kib: middle(|sample| sample.memory_kib)?,
        descriptors: middle(|sample| sample.descriptors)?,
        threads: middle(|sample| sample.threads)?,
        waiting: middle(|sample| sample.waiting)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(grow: impl Fn(usize) -> (u64, u64)) -> Vec<Sample> {
        let sample = |answered| {
            let (memory_kib, descriptors) = grow(answered);
            // As many more as if two more sandboxes waited.
            let waiting = 4 + answered as u64 / 300;
            Sample { answered, memory_kib, descriptors, threads: 9, waiting }
        };
        (0..=600).step_by(10).map(sample).collect()
    }

    fn is_flat(grow: impl Fn(usize) -> (u64, u64)) -> bool {
        Comparison::of(&samples(grow), 600).expect("there are samples").is_flat()
    }

    #[test]
    fn what_grows_while_warming_up_and_then_stays_is_flat() {
        assert!(is_flat(|answered| (50_000 + 100 * answered.min(200) as u64, 50)));
    }

    #[test]
    fn what_grows_with_every_request_is_not_flat() {
        assert!(!is_flat(|answered| (50_000 + 50 * answered as u64, 50)));
        assert!(!is_flat(|answered| (50_000, 50 + answered as u64 / 3)));
    }

    #[test]
    fn sandboxes_that_wait_have_descriptors() {
        assert!(is_flat(|answered| (50_000, 50 + 25 * (answered as u64 / 300))));
    }

    #[test]
    fn too_few_samples_are_no_comparison() {
        assert!(Comparison::of(&samples(|_| (1, 1))[..10], 600).is_none());
    }
}
