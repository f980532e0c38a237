//! Parallel runs, closed loop: each worker starts its next run when the last one has ended. Rounds of the bare program
//! alternate with rounds of ours.

use std::sync::Barrier;
use std::time::{Duration, Instant};

use anyhow::Context;

use super::contender::Way;
use super::subjects::Subject;
use crate::cases::Run;
use crate::measure::{Summary, median_number};

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rounds {
    /// Of each kind.
    pub(crate) count: usize,
    /// How long each is.
    pub(crate) length: Duration,
}

/// The measurements with one number of workers.
pub(crate) struct Parallel {
    pub(crate) subject: &'static str,
    pub(crate) workers: usize,
    pub(crate) bare: Vec<Round>,
    pub(crate) ours: Vec<Round>,
}

/// The runs from the first start to the last end.
#[derive(Default)]
pub(crate) struct Round {
    pub(super) times: Vec<Duration>,
    pub(super) elapsed: Duration,
}

impl Parallel {
    /// Our throughput as a multiple of bare: the median over the rounds.
    pub(crate) fn gain(&self) -> f64 {
        let pairs = self.ours.iter().zip(&self.bare);
        median_number(pairs.map(|(ours, bare)| ours.per_second() / bare.per_second()).collect())
    }
}

impl Round {
    fn per_second(&self) -> f64 {
        per_second(self.times.len(), self.elapsed)
    }

    pub(crate) fn per_second_of(rounds: &[Self]) -> f64 {
        let runs = rounds.iter().map(|round| round.times.len()).sum();
        per_second(runs, rounds.iter().map(|round| round.elapsed).sum())
    }

    pub(crate) fn summary_of(rounds: &[Self]) -> Summary {
        Summary::of(rounds.iter().flat_map(|round| &round.times).copied().collect())
    }
}

fn per_second(runs: usize, elapsed: Duration) -> f64 {
    let runs = f64::from(u32::try_from(runs).unwrap_or(u32::MAX));
    runs / elapsed.as_secs_f64().max(f64::MIN_POSITIVE)
}

pub(super) fn measure(
    subject: &Subject<'_>,
    ours: Way,
    workers: usize,
    rounds: Rounds,
) -> anyhow::Result<Parallel> {
    let (bare, ours) = (subject.way(Way::Bare)?, subject.way(ours)?);
    let mut parallel =
        Parallel { subject: subject.name, workers, bare: Vec::new(), ours: Vec::new() };
    for round in 0..rounds.count {
        // Alternate the order: each leaves the machine in a different state.
        for is_ours in [round % 2 == 0, round % 2 == 1] {
            let (contender, found) =
                if is_ours { (ours, &mut parallel.ours) } else { (bare, &mut parallel.bare) };
            found.push(contender.run_parallel(workers, rounds.length)?);
        }
    }
    Ok(parallel)
}

/// Runs repeatedly on this many threads.
pub(super) fn together(
    run: &(dyn Fn() -> anyhow::Result<Run> + Sync),
    workers: usize,
    length: Duration,
) -> anyhow::Result<Round> {
    let start = Barrier::new(workers + 1);
    let work = || -> anyhow::Result<(Instant, Vec<Duration>)> {
        start.wait();
        let begun = Instant::now();
        let mut times = Vec::new();
        while begun.elapsed() < length {
            times.push(run()?.total);
        }
        Ok((begun, times))
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        start.wait();
        let mut round = Round::default();
        let mut first = None;
        for thread in threads {
            let (begun, times) = thread.join().ok().context("a worker broke off")??;
            // Not this thread's own clock: with more workers than cores it is late itself.
            first = Some(first.map_or(begun, |first: Instant| first.min(begun)));
            round.times.extend(times);
        }
        round.elapsed = first.map_or(Duration::ZERO, |first| first.elapsed());
        Ok(round)
    })
}
