//! The results as files: one for machines, and the printed text beside it.

use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use serde_json::{Value, json};

use crate::cases::Way;
use crate::cold::{Comparison, Findings};
use crate::measure::{Series, ratio};

/// Writes `cold.json` and `cold.txt`.
pub(crate) fn write(findings: &Findings, text: &str, directory: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(directory)
        .with_context(|| format!("make the directory {}", directory.display()))?;
    let json = serde_json::to_string_pretty(&to_json(findings))?;
    for (name, contents) in [("cold.json", &*format!("{json}\n")), ("cold.txt", text)] {
        let path = directory.join(name);
        std::fs::write(&path, contents).with_context(|| format!("write {}", path.display()))?;
    }
    Ok(())
}

fn to_json(findings: &Findings) -> Value {
    let protections = findings.protections.iter().map(|cost| {
        json!({
            "wall": cost.protection,
            "prepared_us": rounded(cost.prepared.micros),
            "prepared_uncertainty_us": rounded(cost.prepared.uncertainty),
            "unprepared_us": rounded(cost.unprepared.micros),
            "unprepared_uncertainty_us": rounded(cost.unprepared.uncertainty),
        })
    });
    json!({
        "benchmark": "cold",
        "host": findings.host.to_json(),
        "not_enforced": findings.not_enforced,
        "comparisons": findings.comparisons.iter().map(comparison).collect::<Vec<_>>(),
        "walls": protections.collect::<Vec<_>>(),
    })
}

fn comparison(comparison: &Comparison) -> Value {
    let bare = comparison.series_of(Way::Bare);
    let rows = comparison.series.iter().map(|(way, series)| row(*way, series, bare));
    json!({
        "program": comparison.payload.name(),
        "pacing": comparison.pacing.name(),
        "ours_cheaper_than_bubblewrap": comparison.is_ours_cheaper(),
        "noisy": bare.is_some_and(|bare| bare.summary().is_noisy()),
        "ways": rows.collect::<Vec<_>>(),
    })
}

fn row(way: Way, series: &Series, bare: Option<&Series>) -> Value {
    let summary = series.summary();
    let mut row = json!({
        "way": way.name(),
        "contains": way.contents(),
        "runs": summary.count,
        "median_us": micros(summary.median),
        "p95_us": micros(summary.p95),
        "p99_us": micros(summary.p99),
    });
    if let Some(bare) = bare {
        row["ratio_to_bare"] = json!(rounded(ratio(summary.median, bare.summary().median)));
        row["ratio_to_bare_by_round"] = json!(rounded(series.ratio_by_round(bare)));
    }
    if matches!(way, Way::Ours | Way::OursUnprepared) {
        let part = |part: fn(&crate::cases::Stages) -> Duration| {
            micros(series.median_of(|run| run.stages.as_ref().map(part)))
        };
        row["stages_us"] = json!({
            "prepare": part(|stages| stages.prepare),
            "between": part(|stages| stages.between),
            "program": part(|stages| stages.program),
            "collect": part(|stages| stages.collect),
        });
    }
    row
}

fn micros(time: Duration) -> f64 {
    rounded(time.as_secs_f64() * 1e6)
}

/// More digits than two would only be noise.
fn rounded(number: f64) -> f64 {
    (number * 100.0).round() / 100.0
}
