use std::fmt::Write as _;

use anyhow::{Context as _, Result};
use chrono::SecondsFormat;
use sandbox_store::AuditRecord;
use serde_json::json;

use crate::config::Config;
use crate::serve::open_store;

/// Formats the newest entries of the audit log.
pub(super) async fn run(limit: u32, as_json: bool, config: &Config) -> Result<String> {
    let store = open_store(config).await?;
    let entries = store.audit_log(limit).await.context("failed to read the audit log")?;
    let line = if as_json { json_line } else { columns };
    let heading = format!("{:<24}  {:<16}  {:<10}  SUBJECT\n", "TIME", "KEY", "ACTION");
    let mut text = if as_json { String::new() } else { heading };
    for entry in &entries {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}", line(entry));
    }
    Ok(text)
}

fn time(entry: &AuditRecord) -> String {
    entry.at.to_rfc3339_opts(SecondsFormat::Millis, true)
}

fn columns(entry: &AuditRecord) -> String {
    let key = entry.actor.as_deref().unwrap_or("none");
    // JSON escapes the control characters in names.
    let detail = match &entry.detail {
        detail if detail.as_object().is_none_or(serde_json::Map::is_empty) => String::new(),
        detail => format!("  {detail}"),
    };
    format!("{}  {key:<16}  {:<10}  {}{detail}", time(entry), entry.action, entry.subject)
}

fn json_line(entry: &AuditRecord) -> String {
    let AuditRecord { actor, action, subject, detail, .. } = entry;
    json!({
        "at": time(entry),
        "key": actor,
        "action": action,
        "subject": subject,
        "detail": detail,
    })
    .to_string()
}
