//! How long one run takes when nothing else runs: every way in turns, back to back and after idleness.

use std::time::Duration;

use super::contender::Way;
use super::subjects::Subject;
use crate::measure::{Pacing, Series, ratio};
use crate::rng::Rng;

/// Rounds at the start that are not counted: files are read for the first time.
const WARM_UP: usize = 2;
/// Slow peers (hundreds of milliseconds) take part in one round of this many.
const SLOW_EVERY: usize = 4;
/// Divisor of the number of rounds for slow programs.
const LONG_FACTOR: usize = 3;

/// How many rounds there are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rounds {
    /// Back to back.
    pub(crate) turns: usize,
    /// Each after idleness.
    pub(crate) spaced: usize,
}

/// One program in one pacing, run in every way.
pub(crate) struct Comparison {
    pub(crate) subject: &'static str,
    pub(crate) version: String,
    pub(crate) pacing: Pacing,
    pub(crate) series: Vec<(Way, Series)>,
}

impl Comparison {
    pub(crate) fn series_of(&self, wanted: Way) -> Option<&Series> {
        self.series.iter().find(|(way, _)| *way == wanted).map(|(_, series)| series)
    }

    pub(crate) fn median(&self, way: Way) -> Option<Duration> {
        self.series_of(way).map(|series| series.summary().median)
    }

    /// How many times as long as bare, in the median.
    pub(crate) fn ratio(&self, way: Way) -> Option<f64> {
        Some(ratio(self.median(way)?, self.median(Way::Bare)?))
    }

    /// Whether the bare runs vary so much that the ratios say little.
    pub(crate) fn is_noisy(&self) -> bool {
        self.series_of(Way::Bare).is_some_and(|bare| bare.summary().is_noisy())
    }
}

pub(super) fn measure(subject: &Subject<'_>, rounds: Rounds) -> anyhow::Result<Vec<Comparison>> {
    let pacings = [(Pacing::Turns, rounds.turns), (Pacing::Idle, rounds.spaced)];
    pacings.map(|(pacing, rounds)| compare(subject, pacing, rounds)).into_iter().collect()
}

fn compare(subject: &Subject<'_>, pacing: Pacing, rounds: usize) -> anyhow::Result<Comparison> {
    let rounds = if subject.is_long { rounds.div_ceil(LONG_FACTOR) } else { rounds };
    let mut series: Vec<_> =
        subject.ways.iter().map(|(way, _)| (*way, Series::default())).collect();
    let mut order: Vec<usize> = (0..series.len()).collect();
    let mut rng = Rng::seeded(rounds);
    for round in 0..WARM_UP + rounds {
        // What one run leaves to be cleaned up then disturbs each of the others equally often.
        rng.shuffle(&mut order);
        for place in &order {
            let (way, contender) = &subject.ways[*place];
            if has_turn(*way, round) {
                std::thread::sleep(pacing.pause());
                let run = contender.run()?;
                if round >= WARM_UP {
                    series[*place].1.push(run);
                }
            }
        }
    }
    let version = subject.version.clone();
    Ok(Comparison { subject: subject.name, version, pacing, series })
}

fn has_turn(way: Way, round: usize) -> bool {
    match way {
        Way::Peer(peer) if peer.is_slow() => round % SLOW_EVERY == WARM_UP,
        _ => true,
    }
}
