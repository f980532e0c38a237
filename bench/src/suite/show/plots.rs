//! Which plots there are, and what is in each.

use std::time::Duration;

use super::super::Findings;
use super::super::contender::Way;
use super::super::latency::Comparison;
use super::super::parallel::Parallel;
use super::super::plot::{Bars, Group, Line, Lines};
use super::super::subjects::{PYTHON, TRUE};
use crate::measure::{Pacing, Summary};
use crate::rounds::Round;

/// Names without their ending, and the plots.
pub(in super::super) fn all(findings: &Findings) -> Vec<(&'static str, String)> {
    let mut plots = Vec::new();
    if !findings.latency.is_empty() {
        plots.push(("latency-true", every_way(findings, TRUE)));
        plots.push(("latency-python", every_way(findings, PYTHON)));
        plots.push(("latency-languages", languages(findings)));
    }
    if !findings.concurrency.is_empty() {
        plots.push(("concurrency-true", concurrency(&findings.concurrency, TRUE)));
        plots.push(("concurrency-python", concurrency(&findings.concurrency, PYTHON)));
    }
    if !findings.throughput.is_empty() {
        plots.push(("throughput", throughput(&findings.throughput)));
    }
    if !findings.growth.is_empty() {
        plots.push(("growth", growth(findings)));
    }
    if !findings.queue.is_empty() {
        plots.push(("queue", queue(findings)));
    }
    plots
}

/// One program: a group for each way, a bar for each pacing.
fn every_way(findings: &Findings, subject: &str) -> String {
    let of =
        |pacing| findings.latency.iter().find(|one| one.subject == subject && one.pacing == pacing);
    let pacings = [Pacing::Turns, Pacing::Idle];
    let ways: Vec<Way> = of(Pacing::Turns)
        .map(|one| one.series.iter().map(|(way, _)| *way).collect())
        .unwrap_or_default();
    let groups = ways.into_iter().map(|way| {
        let median = |pacing| of(pacing).and_then(|one: &Comparison| one.median(way));
        Group {
            name: way.name().to_owned(),
            values: pacings.map(|one| median(one).map(millis)).into(),
        }
    });
    Bars {
        title: format!("{subject}: one run, median"),
        unit: "ms, logarithmic",
        series: pacings.map(|pacing| pacing.name().to_owned()).into(),
        groups: groups.collect(),
    }
    .draw()
}

/// Every program, after idleness: bare and ours.
fn languages(findings: &Findings) -> String {
    let ways = [Way::Bare, Way::Warm, Way::Cold];
    let spaced = findings.latency.iter().filter(|one| one.pacing == Pacing::Idle);
    let groups = spaced.filter(|one| one.subject != TRUE).map(|one| Group {
        name: one.subject.to_owned(),
        values: ways.map(|way| one.median(way).map(millis)).into(),
    });
    Bars {
        title: format!("Hello, {}: median", Pacing::Idle.name()),
        unit: "ms, logarithmic",
        series: ways.map(|way| way.name().to_owned()).into(),
        groups: groups.collect(),
    }
    .draw()
}

fn concurrency(parallel: &[Parallel], subject: &str) -> String {
    let of: Vec<&Parallel> =
        parallel.iter().filter(|parallel| parallel.subject == subject).collect();
    let mut series = Vec::new();
    for (percentile, take) in PERCENTILES {
        for (name, side) in SIDES {
            let point = |parallel: &&Parallel| {
                (number(parallel.workers), millis(take(&Round::summary_of(side(parallel)))))
            };
            let points = of.iter().map(point).collect();
            series.push(Line { name: format!("{name}, {percentile}"), points });
        }
    }
    Lines { title: format!("{subject}: many at once"), across: "workers", unit: "ms", series }
        .draw()
}

type Side = fn(&Parallel) -> &[Round];
const SIDES: [(&str, Side); 2] =
    [("bare", |parallel| &parallel.bare), ("ours", |parallel| &parallel.ours)];
type Percentile = fn(&Summary) -> Duration;
const PERCENTILES: [(&str, Percentile); 3] = [
    ("p50", |summary| summary.median),
    ("p95", |summary| summary.p95),
    ("p99", |summary| summary.p99),
];

fn throughput(parallel: &[Parallel]) -> String {
    let lines = SIDES.map(|(name, side)| Line {
        name: name.to_owned(),
        points: parallel
            .iter()
            .map(|parallel| (number(parallel.workers), Round::per_second_of(side(parallel))))
            .collect(),
    });
    let title = format!("{PYTHON} in a second");
    Lines { title, across: "workers", unit: "in a second", series: lines.into() }.draw()
}

fn growth(findings: &Findings) -> String {
    let line = |name: &str, take: fn(&super::super::growth::Growth) -> Duration| Line {
        name: name.to_owned(),
        points: findings
            .growth
            .iter()
            .map(|one| (number(one.in_flight), millis(take(one))))
            .collect(),
    };
    let lines = vec![
        line("start of each", |one| one.start),
        line("end of each", |one| one.end),
        line("/bin/true beside them, ours", |one| one.ours.median),
        line("/bin/true beside them, bare", |one| one.bare.median),
    ];
    Lines {
        title: "With programs in flight".to_owned(),
        across: "in flight",
        unit: "ms",
        series: lines,
    }
    .draw()
}

fn queue(findings: &Findings) -> String {
    let line = |name: &str, take: fn(&super::super::queue::Queue) -> Option<Duration>| Line {
        name: name.to_owned(),
        points: findings
            .queue
            .iter()
            .filter_map(|one| Some((number(one.queued), millis(take(one)?))))
            .collect(),
    };
    let series = vec![
        line("without a queue", |one| Some(one.without)),
        line("drained in", |one| one.drain),
        line("accepted in", |one| Some(one.accept.median)),
    ];
    let title = "A server's queue: time for each execution".to_owned();
    Lines { title, across: "in the queue", unit: "ms", series }.draw()
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn number(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}
