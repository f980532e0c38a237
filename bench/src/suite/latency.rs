//! How long one run takes when nothing else runs: every way in turns, back to back and after idleness.

use super::contender::Way;
use super::subjects::Subject;
use crate::measure::{self, Pacing, WARM_UP, in_turns};

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
pub(crate) type Comparison = measure::Comparison<Way>;

pub(super) fn measure(subject: &Subject<'_>, rounds: Rounds) -> anyhow::Result<Vec<Comparison>> {
    let pacings = [(Pacing::Turns, rounds.turns), (Pacing::Idle, rounds.spaced)];
    pacings.map(|(pacing, rounds)| compare(subject, pacing, rounds)).into_iter().collect()
}

fn compare(subject: &Subject<'_>, pacing: Pacing, rounds: usize) -> anyhow::Result<Comparison> {
    let rounds = if subject.is_long { rounds.div_ceil(LONG_FACTOR) } else { rounds };
    let series = in_turns(subject.ways.len(), WARM_UP, rounds, |place, round| {
        let (way, contender) = &subject.ways[place];
        if !has_turn(*way, round) {
            return Ok(Vec::new());
        }
        std::thread::sleep(pacing.pause());
        Ok(vec![contender.run()?])
    })?;
    let series = subject.ways.iter().map(|(way, _)| *way).zip(series).collect();
    let version = subject.version.clone();
    Ok(Comparison { subject: subject.name, version, pacing, series })
}

fn has_turn(way: Way, round: usize) -> bool {
    match way {
        Way::Peer(peer) if peer.is_slow() => round % SLOW_EVERY == WARM_UP,
        _ => true,
    }
}
