//! Closed loops: each worker starts its next run when the last one has ended.

use std::sync::Barrier;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};

use crate::measure::{Summary, median_number};

/// The runs from the first start to the last end.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct Round {
    times: Vec<Duration>,
    elapsed: Duration,
    pub(crate) errors: usize,
    /// One of the errors, in words.
    pub(crate) error: Option<String>,
}

impl Round {
    pub(crate) fn per_second(&self) -> f64 {
        per_second(self.times.len(), self.elapsed)
    }

    pub(crate) fn per_second_of(rounds: &[Self]) -> f64 {
        let runs = rounds.iter().map(|round| round.times.len()).sum();
        per_second(runs, rounds.iter().map(|round| round.elapsed).sum())
    }

    pub(crate) fn summary_of(rounds: &[Self]) -> Summary {
        Summary::of(rounds.iter().flat_map(|round| &round.times).copied().collect())
    }

    /// For what must not fail.
    pub(crate) fn without_errors(self) -> anyhow::Result<Self> {
        match self.error {
            Some(error) => bail!(error),
            None => Ok(self),
        }
    }
}

fn per_second(runs: usize, elapsed: Duration) -> f64 {
    let runs = f64::from(u32::try_from(runs).unwrap_or(u32::MAX));
    runs / elapsed.as_secs_f64().max(f64::MIN_POSITIVE)
}

/// The throughput of one as a multiple of the other's: the median over the rounds.
pub(crate) fn gain(one: &[Round], other: &[Round]) -> f64 {
    let pairs = one.iter().zip(other);
    median_number(pairs.map(|(one, other)| one.per_second() / other.per_second()).collect())
}

/// Rounds of two kinds in turns. The order alternates: each leaves the machine in a different state.
pub(crate) fn alternate(
    rounds: usize,
    first: impl Fn() -> anyhow::Result<Round>,
    second: impl Fn() -> anyhow::Result<Round>,
) -> anyhow::Result<(Vec<Round>, Vec<Round>)> {
    let mut found = (Vec::new(), Vec::new());
    for round in 0..rounds {
        if round % 2 == 0 {
            found.0.push(first()?);
            found.1.push(second()?);
        } else {
            found.1.push(second()?);
            found.0.push(first()?);
        }
    }
    Ok(found)
}

/// One round: this many threads, each with a worker of its own, which returns the time of a run.
pub(crate) fn together<Worker: FnMut() -> anyhow::Result<Duration>>(
    workers: usize,
    length: Duration,
    worker: impl Fn() -> Worker + Sync,
) -> anyhow::Result<Round> {
    let start = Barrier::new(workers);
    let work = || {
        let mut run = worker();
        let mut round = Round::default();
        start.wait();
        let begun = Instant::now();
        while begun.elapsed() < length {
            match run() {
                Ok(time) => round.times.push(time),
                Err(error) => {
                    round.errors += 1;
                    round.error = Some(format!("{error:#}"));
                }
            }
        }
        (begun, round)
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        let mut all = Round::default();
        let mut first = None;
        for thread in threads {
            let (begun, round) = thread.join().ok().context("a worker broke off")?;
            // Not this thread's own clock: with more workers than cores it is late itself.
            first = Some(first.map_or(begun, |first: Instant| first.min(begun)));
            all.times.extend(round.times);
            all.errors += round.errors;
            all.error = all.error.or(round.error);
        }
        all.elapsed = first.map_or(Duration::ZERO, |first| first.elapsed());
        Ok(all)
    })
}
