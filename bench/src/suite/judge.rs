//! The promises, and whether the figures keep them.

use std::time::Duration;

use super::Findings;
use super::contender::Way;
use super::latency::Comparison;
use super::memory::{PREPARED, WARM_PYTHON};
use super::subjects::{JAVA, NODE, PYTHON, TRUE, compiled_before};
use crate::table::millis;

/// The maximum time of our run, as a multiple of bare.
const RATIOS: [(&str, Way, f64); 4] = [
    (TRUE, Way::Prepared, 1.4),
    (PYTHON, Way::Warm, 0.2),
    (NODE, Way::Warm, 0.25),
    (JAVA, Way::Warm, 0.1),
];
/// The maximum time that a cached program may take in addition to bare.
const MAX_ADDED: Duration = Duration::from_micros(500);
const COMPILED: [&str; 3] = ["Go", "Rust", "C++"];
/// The minimum throughput with [`GAIN_WORKERS`], as a multiple of bare.
const MIN_GAIN: f64 = 4.0;
const GAIN_WORKERS: usize = 2;
/// MiB of a sandbox that waits.
const MEMORY: [(&str, f64); 2] = [(PREPARED, 2.0), (WARM_PYTHON, 8.0)];

/// A promise beside what was measured.
pub(crate) struct Judgement {
    pub(crate) promise: String,
    pub(crate) figures: String,
    pub(crate) verdict: Verdict,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Holds,
    DoesNotHold,
    NotMeasured,
}

impl Verdict {
    fn of(holds: bool) -> Self {
        if holds { Self::Holds } else { Self::DoesNotHold }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::DoesNotHold => "does NOT hold",
            Self::NotMeasured => "not measured",
        }
    }
}

pub(super) fn judge(findings: &Findings) -> Vec<Judgement> {
    let ratios = RATIOS.iter().map(|(subject, way, most)| ratio(findings, subject, *way, *most));
    let compiled = COMPILED.iter().map(|language| added(findings, language));
    let ahead = [Way::Prepared, Way::Unprepared].map(|way| ahead_of_peers(findings, way));
    let memory = MEMORY.iter().map(|(kind, most)| memory(findings, kind, *most));
    let all = ratios.chain(compiled).chain(ahead).chain([throughput(findings)]).chain(memory);
    all.collect()
}

/// The comparisons of a program, one for each pacing.
fn of<'a>(findings: &'a Findings, subject: &str) -> Vec<&'a Comparison> {
    findings.latency.iter().filter(|comparison| comparison.subject == subject).collect()
}

/// Holds if it does in every pacing.
fn in_every_pacing(
    findings: &Findings,
    subject: &str,
    promise: String,
    look: impl Fn(&Comparison) -> Option<(bool, String)>,
) -> Judgement {
    let mut parts = Vec::new();
    let mut holds = true;
    for comparison in of(findings, subject) {
        let Some((is_kept, figures)) = look(comparison) else {
            continue;
        };
        holds &= is_kept;
        let noisy = if comparison.is_noisy() { " (noisy)" } else { "" };
        parts.push(format!("{}: {figures}{noisy}", comparison.pacing.name()));
    }
    let verdict = if parts.is_empty() { Verdict::NotMeasured } else { Verdict::of(holds) };
    Judgement { promise, figures: parts.join("; "), verdict }
}

fn ratio(findings: &Findings, subject: &str, way: Way, most: f64) -> Judgement {
    let promise = format!("{subject}, {}: at most {most} × bare", way.name());
    in_every_pacing(findings, subject, promise, |comparison| {
        let ratio = comparison.ratio(way)?;
        Some((ratio <= most, format!("{ratio:.3} ×")))
    })
}

fn added(findings: &Findings, language: &str) -> Judgement {
    let subject = compiled_before(language);
    let promise = format!("{subject}: at most {} ms more than bare", millis(MAX_ADDED));
    in_every_pacing(findings, subject, promise, |comparison| {
        let (ours, bare) = (comparison.median(Way::Warm)?, comparison.median(Way::Bare)?);
        let figures = format!("{} ms, bare {} ms", millis(ours), millis(bare));
        Some((ours <= bare + MAX_ADDED, figures))
    })
}

fn ahead_of_peers(findings: &Findings, way: Way) -> Judgement {
    let promise = format!("{TRUE}, {}: ahead of every peer", way.name());
    in_every_pacing(findings, TRUE, promise, |comparison| {
        let ours = comparison.median(way)?;
        let peers = comparison.series.iter().filter(|(way, _)| matches!(way, Way::Peer(_)));
        let medians = peers.map(|(peer, series)| (series.summary().median, peer.name()));
        let (quickest, name) = medians.min()?;
        let figures = format!("{} ms, {name} {} ms", millis(ours), millis(quickest));
        Some((ours < quickest, figures))
    })
}

fn throughput(findings: &Findings) -> Judgement {
    let promise = format!(
        "{PYTHON} in a second with {GAIN_WORKERS} workers: at least {MIN_GAIN} times as many as bare"
    );
    let mut parallel = findings.throughput.iter();
    match parallel.find(|parallel| parallel.workers == GAIN_WORKERS) {
        None => Judgement { promise, figures: String::new(), verdict: Verdict::NotMeasured },
        Some(parallel) => {
            let gain = parallel.gain();
            let figures = format!("{gain:.2} times as many");
            Judgement { promise, figures, verdict: Verdict::of(gain >= MIN_GAIN) }
        }
    }
}

fn memory(findings: &Findings, kind: &str, most: f64) -> Judgement {
    let promise = format!("memory of a sandbox that is {kind}: at most {most} MiB");
    match findings.memory.iter().find(|memory| memory.kind == kind) {
        None => Judgement { promise, figures: String::new(), verdict: Verdict::NotMeasured },
        Some(memory) => {
            let mib = memory.judged_mib();
            let noisy = if memory.is_noisy() { " (noisy)" } else { "" };
            let figures = format!("{mib:.2} MiB{noisy}");
            Judgement { promise, figures, verdict: Verdict::of(mib <= most) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::Run;
    use crate::measure::{Pacing, Series};
    use crate::suite::peers::Peer;

    fn comparison(pacing: Pacing, micros: &[(Way, u64)]) -> Comparison {
        let series = micros.iter().map(|(way, micros)| {
            let mut series = Series::default();
            series.push(Run::lasting(Duration::from_micros(*micros)));
            (*way, series)
        });
        Comparison { subject: TRUE, version: String::new(), pacing, series: series.collect() }
    }

    fn verdicts(latency: Vec<Comparison>) -> Vec<Verdict> {
        let findings = Findings { latency, ..Findings::default() };
        judge(&findings).iter().map(|judgement| judgement.verdict).collect()
    }

    #[test]
    fn what_was_not_measured_is_said_to_be_so() {
        assert!(verdicts(Vec::new()).iter().all(|verdict| *verdict == Verdict::NotMeasured));
    }

    #[test]
    fn the_worse_pacing_counts() {
        let ways = |ours: u64| vec![(Way::Bare, 1000), (Way::Prepared, ours)];
        let good = comparison(Pacing::Turns, &ways(1400));
        let bad = comparison(Pacing::Idle, &ways(1401));
        assert_eq!(verdicts(vec![good, bad])[0], Verdict::DoesNotHold);
        assert_eq!(verdicts(vec![comparison(Pacing::Turns, &ways(1400))])[0], Verdict::Holds);
    }

    #[test]
    fn one_quicker_peer_is_enough() {
        let ways = [
            (Way::Bare, 1000),
            (Way::Prepared, 3000),
            (Way::Peer(Peer::Runc), 9000),
            (Way::Peer(Peer::Crun), 2000),
        ];
        let place = RATIOS.len() + COMPILED.len();
        let verdicts = verdicts(vec![comparison(Pacing::Turns, &ways)]);
        assert_eq!(verdicts[place], Verdict::DoesNotHold);
        assert_eq!(verdicts[place + 1], Verdict::NotMeasured);
    }
}
