//! The results as text and as JSON.

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::{Value, json};

use super::{Comparison, Findings, is_ours_cheaper, is_promised};
use crate::cases::{Payload, Stages, Way};
use crate::measure::{Difference, Series};
use crate::table::{figures, grid, micros, rounded, summary_json};

type Part = fn(&Stages) -> Duration;

/// The stages of a run, in their order.
const STAGES: [(&str, Part); 4] = [
    ("prepare", |stages| stages.prepare),
    ("between", |stages| stages.between),
    ("program", |stages| stages.program),
    ("collect", |stages| stages.collect),
];

/// Everything, in the order a reader asks: how much, what is that, and where does it go.
pub(super) fn render(findings: &Findings) -> String {
    let mut text = String::from("Cold start: what a sandbox for one run costs\n\n");
    text.push_str(&findings.host.text());
    for comparison in &findings.comparisons {
        let Comparison { subject, pacing, .. } = comparison;
        let spread = comparison.bare_spread();
        let table = comparison_table(comparison);
        let _ = writeln!(text, "\n{subject}, {} ({spread})\n{table}", pacing.name());
    }
    text.push_str("\nWhat a row contains\n");
    for way in [Way::Bare, Way::Bubblewrap, Way::Ours, Way::OursUnprepared] {
        let _ = writeln!(text, "  {}: {}", way.name(), way.contents());
    }
    if !findings.not_enforced.is_empty() {
        let names: Vec<&str> =
            findings.not_enforced.iter().map(|protection| protection.name()).collect();
        let _ = writeln!(text, "  not held on this host: {}", names.join(", "));
    }
    let _ = writeln!(text, "\n{}", stages_section(findings));
    let _ = writeln!(text, "\n{}", protections_section(findings));
    let _ = writeln!(text, "{}", verdict(findings));
    text
}

fn comparison_table(comparison: &Comparison) -> String {
    let heads = ["ms", "runs", "median", "p95", "p99", "× bare", "× bare by round"];
    let rows = comparison.series.iter().map(|(way, series)| {
        let mut row = vec![way.name().to_owned()];
        row.extend(figures(series.summary()));
        row.push(format!("{:.2}", comparison.ratio(*way).unwrap_or_default()));
        row.push(format!("{:.2}", series.ratio_by_round(comparison.bare())));
        row
    });
    grid(&heads, rows)
}

fn stages_section(findings: &Findings) -> String {
    let heads = ["µs, medians", "prepare", "between", "program", "collect", "total"];
    let whole_micros = |time: Duration| format!("{:.0}", time.as_secs_f64() * 1e6);
    let mut rows = Vec::new();
    for comparison in &findings.comparisons {
        for way in [Way::Ours, Way::OursUnprepared] {
            let Some(series) = comparison.series_of(way) else {
                continue;
            };
            let Comparison { subject, pacing, .. } = comparison;
            let mut row = vec![format!("{subject}, {}, {}", way.name(), pacing.name())];
            row.extend(STAGES.map(|(_, stage)| whole_micros(stage_median(series, stage))));
            row.push(whole_micros(series.summary().median));
            rows.push(row);
        }
    }
    format!(
        "Where our time goes, by stage\n{}\n\
         \x20 prepare: from the request until we hear that the program, fully confined, starts\n\
         \x20 between: what is left of the total: the news of the end on its way\n\
         \x20 program: from exec until init has seen the program's end\n\
         \x20 collect: counters read, files collected, the answer put together",
        grid(&heads, rows)
    )
}

fn stage_median(series: &Series, stage: Part) -> Duration {
    series.median_of(|run| run.stages.as_ref().map(stage))
}

fn protections_section(findings: &Findings) -> String {
    let heads = ["µs", "ours", "nothing prepared"];
    let difference = |difference: Difference| {
        format!("{:+.0} ± {:.0}", difference.micros, difference.uncertainty)
    };
    let rows = findings.protections.iter().map(|cost| {
        vec![
            cost.protection.name().to_owned(),
            difference(cost.prepared),
            difference(cost.unprepared),
        ]
    });
    format!(
        "Where our time goes, by protection: what {} takes longer with it than without it \
         (median over rounds,\nwith the standard error of that median: less than twice \
         the error is noise)\n{}",
        Payload::True.name(),
        grid(&heads, rows)
    )
}

fn verdict(findings: &Findings) -> String {
    let mut text = String::new();
    for one in findings.dearer() {
        let (program, pacing) = (one.subject, one.pacing.name());
        let weight = if is_promised(one) { "a broken promise" } else { "not judged" };
        let _ = write!(
            text,
            "\nOurs does NOT cost less than bubblewrap ({weight}): {program}, {pacing}"
        );
    }
    if text.is_empty() {
        text.push_str("\nOurs costs less than bubblewrap in every case.");
    }
    text
}

pub(super) fn to_json(findings: &Findings) -> Value {
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
        "comparisons": findings.comparisons.iter().map(comparison_json).collect::<Vec<_>>(),
        "walls": protections.collect::<Vec<_>>(),
    })
}

fn comparison_json(comparison: &Comparison) -> Value {
    let rows = comparison.series.iter().map(|(way, series)| {
        let mut row = summary_json(series.summary());
        row["way"] = json!(way.name());
        row["contains"] = json!(way.contents());
        row["ratio_to_bare"] = json!(comparison.ratio(*way).map(rounded));
        row["ratio_to_bare_by_round"] = json!(rounded(series.ratio_by_round(comparison.bare())));
        if matches!(way, Way::Ours | Way::OursUnprepared) {
            let median = |stage| json!(micros(stage_median(series, stage)));
            let stages = STAGES.map(|(name, stage)| (name.to_owned(), median(stage)));
            row["stages_us"] = Value::Object(stages.into_iter().collect());
        }
        row
    });
    json!({
        "program": comparison.subject,
        "pacing": comparison.pacing.name(),
        "ours_cheaper_than_bubblewrap": is_ours_cheaper(comparison),
        "noisy": comparison.is_noisy(),
        "ways": rows.collect::<Vec<_>>(),
    })
}
