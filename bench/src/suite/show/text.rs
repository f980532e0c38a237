//! Everything as text, in the order a reader asks.

use std::fmt::Write as _;

use super::super::Findings;
use super::super::contender::Way;
use super::super::judge::Judgement;
use super::super::latency::Comparison;
use super::super::parallel::Parallel;
use super::super::peers::Peer;
use crate::measure::ratio;
use crate::rounds::Round;
use crate::table::{figures, grid, millis};

pub(in super::super) fn render(findings: &Findings, judgements: &[Judgement]) -> String {
    let host = findings.host.text();
    let mut text = format!("Ours against bare processes and other sandboxes\n\n{host}");
    for (name, version) in &findings.versions {
        let _ = writeln!(text, "{name}: {version}");
    }
    for missing in &findings.missing {
        let _ = writeln!(text, "not compared: {missing}");
    }
    let _ = writeln!(text, "measured in {} s", findings.seconds);
    for comparison in &findings.latency {
        text.push_str(&latency(comparison));
    }
    text.push_str(&parallel("Many at once", &findings.concurrency));
    text.push_str(&parallel("How many in a second", &findings.throughput));
    text.push_str(&memory(findings));
    text.push_str(&growth(findings));
    text.push_str(&queue(findings));
    text.push_str(&contents(findings));
    text.push_str("\nJudgement\n");
    for judgement in judgements {
        let (promise, verdict) = (&judgement.promise, judgement.verdict.name());
        let _ = writeln!(text, "  {promise}: {verdict}");
        if !judgement.figures.is_empty() {
            let _ = writeln!(text, "      {}", judgement.figures);
        }
    }
    text
}

fn latency(comparison: &Comparison) -> String {
    let Comparison { subject, version, pacing, .. } = comparison;
    let separator = if version.is_empty() { "" } else { " " };
    let heads = ["ms", "runs", "median", "p95", "p99", "first output", "× bare"];
    let rows = comparison.series.iter().map(|(way, series)| {
        let mut row = vec![way.name().to_owned()];
        row.extend(figures(series.summary()));
        let first = series.median_of(|run| run.first_output);
        row.push(if first.is_zero() { String::new() } else { millis(first) });
        row.push(comparison.ratio(*way).map_or(String::new(), |ratio| format!("{ratio:.3}")));
        row
    });
    format!(
        "\n{subject}{separator}{version}, {} ({})\n{}\n",
        pacing.name(),
        comparison.bare_spread(),
        grid(&heads, rows)
    )
}

fn parallel(title: &str, parallel: &[Parallel]) -> String {
    if parallel.is_empty() {
        return String::new();
    }
    let heads = ["ms", "workers", "runs", "median", "p95", "p99", "in a second", "× bare by round"];
    let rows = parallel.iter().flat_map(|parallel| {
        let row = |name: &str, rounds: &[Round], gain: String| {
            let mut row =
                vec![format!("{}, {name}", parallel.subject), parallel.workers.to_string()];
            row.extend(figures(Round::summary_of(rounds)));
            row.extend([format!("{:.1}", Round::per_second_of(rounds)), gain]);
            row
        };
        let noisy =
            if Round::summary_of(&parallel.bare).is_noisy() { "bare (noisy)" } else { "bare" };
        [
            row(noisy, &parallel.bare, String::new()),
            row("ours", &parallel.ours, format!("{:.3}", parallel.gain())),
        ]
    });
    format!("\n{title}, in alternating rounds\n{}\n", grid(&heads, rows))
}

fn memory(findings: &Findings) -> String {
    if findings.memory.is_empty() {
        return String::new();
    }
    let heads = [
        "MiB for each that waits",
        "sandboxes",
        "used",
        "its processes",
        "no longer available",
        "",
    ];
    let rows = findings.memory.iter().map(|memory| {
        vec![
            memory.kind.to_owned(),
            memory.sandboxes.to_string(),
            format!("{:.2}", memory.used_mib()),
            format!("{:.2}", memory.processes_mib()),
            format!("{:.2}", memory.unavailable_mib()),
            if memory.is_noisy() { "noisy".to_owned() } else { String::new() },
        ]
    });
    format!(
        "\nMemory of the host, by /proc/meminfo with and without them\n{}\n\
         \x20 used: what is neither free nor a page of a file, the kernel's own memory included\n\
         \x20 judged is this or what its processes have, whichever is more\n",
        grid(&heads, rows)
    )
}

fn growth(findings: &Findings) -> String {
    if findings.growth.is_empty() {
        return String::new();
    }
    let heads = ["in flight", "start", "end", "KiB", "/bin/true bare", "ours", "p95", "× bare"];
    let rows = findings.growth.iter().map(|growth| {
        vec![
            growth.in_flight.to_string(),
            millis(growth.start),
            millis(growth.end),
            format!("{:.0}", growth.memory_kib),
            millis(growth.bare.median),
            millis(growth.ours.median),
            millis(growth.ours.p95),
            format!("{:.3}", ratio(growth.ours.median, growth.bare.median)),
        ]
    });
    format!(
        "\nWith programs in flight that wait: ms and KiB for each of them, and ms of a run beside them\n{}\n",
        grid(&heads, rows)
    )
}

fn queue(findings: &Findings) -> String {
    if findings.queue.is_empty() {
        return String::new();
    }
    let heads =
        ["in the queue", "accepted in", "p99", "drained in", "without a queue", "longest wait"];
    let rows = findings.queue.iter().map(|queue| {
        vec![
            queue.queued.to_string(),
            millis(queue.accept.median),
            millis(queue.accept.p99),
            queue.drain.map_or(String::new(), millis),
            millis(queue.without),
            millis(queue.longest_wait),
        ]
    });
    format!(
        "\nA server's queue: ms for each execution, of an empty shell script with two workers\n{}\n",
        grid(&heads, rows)
    )
}

fn contents(findings: &Findings) -> String {
    let ours = [Way::Bare, Way::Prepared, Way::Unprepared, Way::Warm, Way::Cold];
    let all = ours.into_iter().chain(Peer::ALL.map(Way::Peer));
    let is_there = |way: &Way| findings.latency.iter().any(|one| one.series_of(*way).is_some());
    if findings.latency.is_empty() {
        return String::new();
    }
    let mut text = String::from("\nWhat a row contains\n");
    for way in all.filter(is_there) {
        let _ = writeln!(text, "  {}: {}", way.name(), way.contents());
    }
    text.push_str("  Java: a new source each time, as javac and then java, without a shell\n");
    text.push_str("  compiled before: bare is the very binary that our compile cache holds\n");
    text.push_str("\nRuntimes that ours started ahead; what is not named here is never warm\n");
    for line in &findings.warm {
        let _ = writeln!(text, "  {line}");
    }
    text
}
