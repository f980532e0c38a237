//! The results as text for people.

use std::fmt::Write;
use std::time::Duration;

use comfy_table::{CellAlignment, Table};

use crate::cases::{Payload, Stages, Way};
use crate::cold::{Comparison, Findings};
use crate::measure::{Difference, Series, ratio};

/// Everything, in the order a reader asks: how much, what is that, and where does it go.
pub(crate) fn render(findings: &Findings) -> String {
    let mut text = String::from("Cold start: what a sandbox for one run costs\n\n");
    for line in findings.host.lines() {
        line_to(&mut text, &line);
    }
    for comparison in &findings.comparisons {
        let title = title(comparison);
        line_to(&mut text, &format!("\n{title}\n{}", comparison_table(comparison)));
    }
    line_to(&mut text, "\nWhat a row contains");
    for way in [Way::Bare, Way::Bubblewrap, Way::Ours, Way::OursUnprepared] {
        line_to(&mut text, &format!("  {}: {}", way.name(), way.contents()));
    }
    if !findings.not_enforced.is_empty() {
        let names: Vec<&str> =
            findings.not_enforced.iter().map(|protection| protection.name()).collect();
        line_to(&mut text, &format!("  not held on this host: {}", names.join(", ")));
    }
    line_to(&mut text, &format!("\n{}", stages_section(findings)));
    line_to(&mut text, &format!("\n{}", walls_section(findings)));
    line_to(&mut text, &verdict(findings));
    text
}

fn title(comparison: &Comparison) -> String {
    let mut title = format!("{}, {}", comparison.payload.name(), comparison.pacing.name());
    if let Some(bare) = comparison.series_of(Way::Bare) {
        let summary = bare.summary();
        let spread = ratio(summary.p95, summary.median);
        let _ = write!(title, " (bare: p95 is {spread:.2} times the median");
        title.push_str(if summary.is_noisy() { ", noisy)" } else { ")" });
    }
    title
}

fn comparison_table(comparison: &Comparison) -> String {
    let heads = ["ms", "runs", "median", "p95", "p99", "× bare", "× bare by round"];
    let bare = comparison.series_of(Way::Bare);
    let rows = comparison.series.iter().map(|(way, series)| {
        let summary = series.summary();
        let to_bare =
            |ratio: Option<f64>| ratio.map_or(String::new(), |ratio| format!("{ratio:.2}"));
        vec![
            way.name().to_owned(),
            summary.count.to_string(),
            millis(summary.median),
            millis(summary.p95),
            millis(summary.p99),
            to_bare(bare.map(|bare| ratio(summary.median, bare.summary().median))),
            to_bare(bare.map(|bare| series.ratio_by_round(bare))),
        ]
    });
    grid(&heads, rows)
}

fn stages_section(findings: &Findings) -> String {
    let heads = ["µs, medians", "prepare", "between", "program", "collect", "total"];
    let mut rows = Vec::new();
    for comparison in &findings.comparisons {
        for way in [Way::Ours, Way::OursUnprepared] {
            let Some(series) = comparison.series_of(way) else {
                continue;
            };
            let (payload, pacing) = (comparison.payload.name(), comparison.pacing.name());
            let mut row = vec![format!("{payload}, {}, {pacing}", way.name())];
            row.extend(stage_medians(series));
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

fn stage_medians(series: &Series) -> Vec<String> {
    let part = |part: fn(&Stages) -> Duration| {
        whole_micros(series.median_of(|run| run.stages.as_ref().map(part)))
    };
    vec![
        part(|stages| stages.prepare),
        part(|stages| stages.between),
        part(|stages| stages.program),
        part(|stages| stages.collect),
        whole_micros(series.median_of(|run| Some(run.total))),
    ]
}

fn walls_section(findings: &Findings) -> String {
    let heads = ["µs", "ours", "nothing prepared"];
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
        let (program, pacing) = (one.payload.name(), one.pacing.name());
        let weight = if one.is_promised() { "a broken promise" } else { "not judged" };
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

/// Names to the left, figures to the right, no lines.
pub(crate) fn grid(heads: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_style(comfy_table::presets::NOTHING);
    table.set_header(heads);
    for row in rows {
        table.add_row(row);
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.trim_fmt()
}

fn difference(difference: Difference) -> String {
    format!("{:+.0} ± {:.0}", difference.micros, difference.uncertainty)
}

fn line_to(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
}

pub(crate) fn millis(time: Duration) -> String {
    format!("{:.3}", time.as_secs_f64() * 1e3)
}

fn whole_micros(time: Duration) -> String {
    format!("{:.0}", time.as_secs_f64() * 1e6)
}
