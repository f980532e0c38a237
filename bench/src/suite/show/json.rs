//! Everything as JSON.

use serde_json::{Value, json};

use super::super::Findings;
use super::super::judge::Judgement;
use super::super::latency::Comparison;
use super::super::parallel::Parallel;
use crate::measure::ratio;
use crate::rounds::Round;
use crate::table::{micros, rounded, summary_json};

pub(in super::super) fn of(findings: &Findings, judgements: &[Judgement]) -> Value {
    let versions = findings.versions.iter().map(|(name, version)| (name.clone(), json!(version)));
    json!({
        "benchmark": "bench",
        "host": findings.host.to_json(),
        "versions": versions.collect::<serde_json::Map<_, _>>(),
        "not_compared": findings.missing,
        "seconds": findings.seconds,
        "started_ahead": findings.warm,
        "latency": findings.latency.iter().map(latency).collect::<Vec<_>>(),
        "concurrency": findings.concurrency.iter().map(parallel).collect::<Vec<_>>(),
        "throughput": findings.throughput.iter().map(parallel).collect::<Vec<_>>(),
        "memory": findings.memory.iter().map(|memory| json!({
            "kind": memory.kind,
            "sandboxes": memory.sandboxes,
            "used_mib": rounded(memory.used_mib()),
            "processes_mib": rounded(memory.processes_mib()),
            "judged_mib": rounded(memory.judged_mib()),
            "noisy": memory.is_noisy(),
            "unavailable_mib": rounded(memory.unavailable_mib()),
            "used_kib_by_repetition": memory.used.iter().copied().map(rounded).collect::<Vec<_>>(),
        })).collect::<Vec<_>>(),
        "growth": findings.growth.iter().map(|growth| json!({
            "in_flight": growth.in_flight,
            "start_us": micros(growth.start),
            "end_us": micros(growth.end),
            "memory_kib": rounded(growth.memory_kib),
            "bare": summary_json(growth.bare),
            "ours": summary_json(growth.ours),
            "ratio_to_bare": rounded(ratio(growth.ours.median, growth.bare.median)),
        })).collect::<Vec<_>>(),
        "queue": findings.queue.iter().map(|queue| json!({
            "queued": queue.queued,
            "accept": summary_json(queue.accept),
            "drain_us": queue.drain.map(micros),
            "without_queue_us": micros(queue.without),
            "longest_wait_us": micros(queue.longest_wait),
        })).collect::<Vec<_>>(),
        "judgements": judgements.iter().map(|judgement| json!({
            "promise": judgement.promise,
            "verdict": judgement.verdict.name(),
            "figures": judgement.figures,
        })).collect::<Vec<_>>(),
    })
}

fn latency(comparison: &Comparison) -> Value {
    let ways = comparison.series.iter().map(|(way, series)| {
        let mut row = summary_json(series.summary());
        let first = series.median_of(|run| run.first_output);
        row["way"] = json!(way.name());
        row["first_output_us"] = json!((!first.is_zero()).then(|| micros(first)));
        row["ratio_to_bare"] = json!(comparison.ratio(*way).map(rounded));
        row
    });
    json!({
        "program": comparison.subject,
        "version": comparison.version,
        "pacing": comparison.pacing.name(),
        "noisy": comparison.is_noisy(),
        "ways": ways.collect::<Vec<_>>(),
    })
}

fn parallel(parallel: &Parallel) -> Value {
    let bare = Round::summary_of(&parallel.bare);
    json!({
        "program": parallel.subject,
        "workers": parallel.workers,
        "noisy": bare.is_noisy(),
        "bare": summary_json(bare),
        "ours": summary_json(Round::summary_of(&parallel.ours)),
        "bare_per_second": rounded(Round::per_second_of(&parallel.bare)),
        "ours_per_second": rounded(Round::per_second_of(&parallel.ours)),
        "gain_by_round": rounded(parallel.gain()),
    })
}
