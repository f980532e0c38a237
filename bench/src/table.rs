//! Results as tables, as JSON and as files.

use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use comfy_table::{CellAlignment, Table};
use serde_json::{Value, json};

use crate::measure::Summary;

/// Prints the text, and writes `NAME.json` and `NAME.txt`.
pub(crate) fn publish(
    name: &str,
    text: &str,
    json: &Value,
    directory: Option<&Path>,
) -> anyhow::Result<()> {
    std::io::stdout().write_all(text.as_bytes()).context("print the results")?;
    directory.map_or(Ok(()), |directory| write(name, text, json, directory))
}

/// Writes `NAME.json` and `NAME.txt`.
pub(crate) fn write(name: &str, text: &str, json: &Value, directory: &Path) -> anyhow::Result<()> {
    let json = serde_json::to_string_pretty(json)? + "\n";
    write_file(directory, &format!("{name}.json"), &json)?;
    write_file(directory, &format!("{name}.txt"), text)
}

pub(crate) fn write_file(directory: &Path, name: &str, contents: &str) -> anyhow::Result<()> {
    let path = directory.join(name);
    std::fs::create_dir_all(directory)
        .and_then(|()| std::fs::write(&path, contents))
        .with_context(|| format!("write {}", path.display()))
}

/// Names to the left, figures to the right, no lines.
pub(crate) fn grid(heads: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_style(comfy_table::presets::NOTHING);
    table.set_header(heads);
    table.add_rows(rows);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.trim_fmt()
}

pub(crate) fn millis(time: Duration) -> String {
    format!("{:.3}", time.as_secs_f64() * 1e3)
}

/// The columns for runs, median, p95 and p99.
pub(crate) fn figures(summary: Summary) -> [String; 4] {
    let Summary { count, median, p95, p99 } = summary;
    [count.to_string(), millis(median), millis(p95), millis(p99)]
}

pub(crate) fn summary_json(summary: Summary) -> Value {
    json!({
        "runs": summary.count,
        "median_us": micros(summary.median),
        "p95_us": micros(summary.p95),
        "p99_us": micros(summary.p99),
    })
}

pub(crate) fn micros(time: Duration) -> f64 {
    rounded(time.as_secs_f64() * 1e6)
}

/// More digits than three would only be noise.
pub(crate) fn rounded(number: f64) -> f64 {
    (number * 1000.0).round() / 1000.0
}
