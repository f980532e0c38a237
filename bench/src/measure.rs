//! Rounds in which every case has its turn, and the statistics over them.

use std::time::Duration;

use crate::cases::{Case, Payload, Run};
use crate::rng::Rng;

/// A pause after which the kernel has forgotten that anyone was in a hurry: joining a cgroup then
/// waits for a grace period of several milliseconds, which a tight loop hides.
const IDLE: Duration = Duration::from_millis(100);
/// Runs of one case in a row; more than there are spare slots.
const BURST: usize = 10;
/// Preparing a slot takes a few milliseconds, most of them waiting for the kernel.
const REFILL: Duration = Duration::from_millis(10);
/// Rounds at the start that are not counted: files are read for the first time.
pub(crate) const WARM_UP: usize = 2;

/// How runs follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pacing {
    /// One run of each case, without pause.
    Turns,
    /// Ten runs of each case in a row, so that spare slots run out.
    Bursts,
    /// One run of each case, each after a tenth of a second in which nothing happens.
    Idle,
    /// One run of each case, each after spare slots had time to be prepared again: quiet enough to see
    /// small differences between cases of ours, and quicker than idleness.
    Refilled,
}

impl Pacing {
    /// Those in which ours is compared with others.
    pub(crate) const COMPARED: [Self; 3] = [Self::Turns, Self::Bursts, Self::Idle];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Turns => "back to back, in turns",
            Self::Bursts => "back to back, ten in a row",
            Self::Idle => "each after 100 ms of idleness",
            Self::Refilled => "each after 10 ms",
        }
    }

    fn runs_in_a_row(self) -> usize {
        match self {
            Self::Turns | Self::Idle | Self::Refilled => 1,
            Self::Bursts => BURST,
        }
    }

    pub(crate) fn pause(self) -> Duration {
        match self {
            Self::Turns | Self::Bursts => Duration::ZERO,
            Self::Idle => IDLE,
            Self::Refilled => REFILL,
        }
    }

    /// How many rounds fit beside that many rounds with pauses.
    pub(crate) fn rounds(self, with_pauses: usize) -> usize {
        match self {
            Self::Turns => with_pauses * 8,
            Self::Bursts => with_pauses.div_ceil(2),
            Self::Idle => with_pauses,
            Self::Refilled => with_pauses * 2,
        }
    }
}

/// All runs of one case, by round.
#[derive(Debug, Default)]
pub(crate) struct Series {
    rounds: Vec<Vec<Run>>,
}

/// What is said about the times of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Summary {
    pub(crate) count: usize,
    pub(crate) median: Duration,
    pub(crate) p95: Duration,
    pub(crate) p99: Duration,
}

/// A difference between two cases, in microseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Difference {
    /// The median over the rounds.
    pub(crate) micros: f64,
    /// The standard error of that median.
    pub(crate) uncertainty: f64,
}

/// For values spread like a bell curve: from the median distance to the median to the standard
/// deviation (1.4826), and from there, over the root of the count, to the error of the median (1.2533).
const ERROR_OF_MEDIAN: f64 = 1.4826 * 1.2533;

/// One program in one pacing, run in every way. The first way is the bare one.
pub(crate) struct Comparison<Way> {
    pub(crate) subject: &'static str,
    pub(crate) version: String,
    pub(crate) pacing: Pacing,
    pub(crate) series: Vec<(Way, Series)>,
}

impl<Way: Copy + PartialEq> Comparison<Way> {
    pub(crate) fn bare(&self) -> &Series {
        &self.series[0].1
    }

    pub(crate) fn series_of(&self, wanted: Way) -> Option<&Series> {
        self.series.iter().find(|(way, _)| *way == wanted).map(|(_, series)| series)
    }

    pub(crate) fn median(&self, way: Way) -> Option<Duration> {
        self.series_of(way).map(|series| series.summary().median)
    }

    /// How many times as long as bare, in the median.
    pub(crate) fn ratio(&self, way: Way) -> Option<f64> {
        Some(ratio(self.median(way)?, self.bare().summary().median))
    }

    /// Whether the bare runs vary so much that the ratios say little.
    pub(crate) fn is_noisy(&self) -> bool {
        self.bare().summary().is_noisy()
    }

    /// The same in words.
    pub(crate) fn bare_spread(&self) -> String {
        let bare = self.bare().summary();
        let noisy = if bare.is_noisy() { ", noisy" } else { "" };
        format!("bare: p95 is {:.2} times the median{noisy}", ratio(bare.p95, bare.median))
    }
}

/// Runs the cases in turns.
pub(crate) fn measure(
    cases: &[Case<'_>],
    payload: Payload,
    pacing: Pacing,
    rounds: usize,
) -> anyhow::Result<Vec<Series>> {
    in_turns(cases.len(), WARM_UP, rounds, |place, _| {
        let run = |_| {
            std::thread::sleep(pacing.pause());
            cases[place].run(payload)
        };
        (0..pacing.runs_in_a_row()).map(run).collect()
    })
}

/// Gives every case its turn in every round: `turn` gets its place and the round. Every round draws a new order:
/// what one run leaves to be cleaned up in the background then disturbs each of the others equally often.
pub(crate) fn in_turns(
    cases: usize,
    warm_up: usize,
    rounds: usize,
    mut turn: impl FnMut(usize, usize) -> anyhow::Result<Vec<Run>>,
) -> anyhow::Result<Vec<Series>> {
    let mut series: Vec<Series> = (0..cases).map(|_| Series::default()).collect();
    let mut order: Vec<usize> = (0..cases).collect();
    let mut rng = Rng::seeded(rounds);
    for round in 0..warm_up + rounds {
        rng.shuffle(&mut order);
        for place in &order {
            let runs = turn(*place, round)?;
            if round >= warm_up && !runs.is_empty() {
                series[*place].rounds.push(runs);
            }
        }
    }
    Ok(series)
}

impl Series {
    /// Adds a round of one run.
    pub(crate) fn push(&mut self, run: Run) {
        self.rounds.push(vec![run]);
    }

    pub(crate) fn summary(&self) -> Summary {
        Summary::of(self.times(|run| Some(run.total)))
    }

    /// The median of some part of the runs, where they have that part.
    pub(crate) fn median_of(&self, part: impl Fn(&Run) -> Option<Duration>) -> Duration {
        percentile(&self.times(part), 50)
    }

    /// The median over the rounds of how many times longer this took than the other in that round.
    pub(crate) fn ratio_by_round(&self, other: &Self) -> f64 {
        let pairs = self.rounds.iter().zip(&other.rounds);
        median_number(
            pairs.map(|(ours, theirs)| ratio(round_median(ours), round_median(theirs))).collect(),
        )
    }

    /// How many microseconds more this took than the other, round by round.
    pub(crate) fn difference_by_round(&self, other: &Self) -> Difference {
        let micros = |runs: &[Run]| round_median(runs).as_secs_f64() * 1e6;
        let pairs = self.rounds.iter().zip(&other.rounds);
        let differences: Vec<f64> =
            pairs.map(|(ours, theirs)| micros(ours) - micros(theirs)).collect();
        let median = median_number(differences.clone());
        let deviations = differences.iter().map(|difference| (difference - median).abs());
        let deviation = median_number(deviations.collect());
        let count = u32::try_from(differences.len()).unwrap_or(u32::MAX).max(1);
        Difference {
            micros: median,
            uncertainty: deviation * ERROR_OF_MEDIAN / f64::from(count).sqrt(),
        }
    }

    fn times(&self, part: impl Fn(&Run) -> Option<Duration>) -> Vec<Duration> {
        let mut times: Vec<Duration> = self.rounds.iter().flatten().filter_map(part).collect();
        times.sort_unstable();
        times
    }
}

impl Summary {
    /// What is said about these times, in whatever order.
    pub(crate) fn of(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        Self {
            count: times.len(),
            median: percentile(&times, 50),
            p95: percentile(&times, 95),
            p99: percentile(&times, 99),
        }
    }

    /// Whether the times spread so far that differences of a few per cent mean nothing.
    pub(crate) fn is_noisy(&self) -> bool {
        self.p95 > self.median * 2
    }
}

pub(crate) fn ratio(this: Duration, other: Duration) -> f64 {
    this.as_secs_f64() / other.as_secs_f64().max(f64::MIN_POSITIVE)
}

fn round_median(runs: &[Run]) -> Duration {
    let mut times: Vec<Duration> = runs.iter().map(|run| run.total).collect();
    times.sort_unstable();
    percentile(&times, 50)
}

/// A percentile of sorted values.
fn percentile(sorted: &[Duration], per_cent: usize) -> Duration {
    let rank = (sorted.len() * per_cent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied().unwrap_or_default()
}

pub(crate) fn median_number(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_unstable_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(millis: &[u64]) -> Series {
        let run = |millis: &u64| Run::lasting(Duration::from_millis(*millis));
        Series { rounds: millis.iter().map(|millis| vec![run(millis)]).collect() }
    }

    #[test]
    fn percentiles_are_values_that_were_measured() {
        let hundred: Vec<u64> = (1..=100).rev().collect();
        let summary = series(&hundred).summary();
        assert_eq!(summary.count, 100);
        assert_eq!(summary.median, Duration::from_millis(50));
        assert_eq!(summary.p95, Duration::from_millis(95));
        assert_eq!(summary.p99, Duration::from_millis(99));
        assert_eq!(series(&[7]).summary().p99, Duration::from_millis(7));
    }

    #[test]
    fn a_slow_round_does_not_change_the_ratio_by_round() {
        let (bare, other) = (series(&[1, 1, 50]), series(&[3, 3, 150]));
        assert!((other.ratio_by_round(&bare) - 3.0).abs() < 1e-9);
        let difference = other.difference_by_round(&bare);
        assert!((difference.micros - 2000.0).abs() < 1e-6);
    }

    #[test]
    fn differences_that_vary_are_uncertain() {
        let none = series(&[0; 4]);
        let steady = series(&[5; 4]).difference_by_round(&none);
        let varying = series(&[1, 3, 5, 7]).difference_by_round(&none);
        assert!(steady.uncertainty.abs() < 1e-9);
        assert!(varying.uncertainty > 1000.0);
    }

    #[test]
    fn a_wide_spread_is_called_noisy() {
        assert!(!series(&[10; 20]).summary().is_noisy());
        assert!(series(&[&[10; 18][..], &[30; 2]].concat()).summary().is_noisy());
    }
}
