//! The results: text for people, JSON for machines, plots for both.

pub(super) mod json;
mod plots;
pub(super) mod text;

use std::path::Path;

use anyhow::Context;

use super::Findings;
use super::judge::Judgement;

/// Writes `NAME.txt`, `NAME.json` and a plot for each part that was measured.
pub(super) fn record(
    findings: &Findings,
    judgements: &[Judgement],
    text: &str,
    directory: &Path,
    name: &str,
) -> anyhow::Result<()> {
    std::fs::create_dir_all(directory)
        .with_context(|| format!("make the directory {}", directory.display()))?;
    let json = serde_json::to_string_pretty(&json::of(findings, judgements))? + "\n";
    let mut files = vec![(format!("{name}.json"), json), (format!("{name}.txt"), text.to_owned())];
    files.extend(plots::all(findings).into_iter().map(|(name, svg)| (format!("{name}.svg"), svg)));
    for (name, contents) in files {
        let path = directory.join(name);
        std::fs::write(&path, contents).with_context(|| format!("write {}", path.display()))?;
    }
    Ok(())
}
