use rusqlite::{Connection, Row, params};

use super::value::{json_in, micros, time_in};
use crate::{AuditRecord, StoreError};

pub(super) fn write(connection: &Connection, record: &AuditRecord) -> Result<(), StoreError> {
    let mut statement = connection.prepare_cached(
        "INSERT INTO audit (at, actor, action, subject, detail) VALUES (?, ?, ?, ?, ?)",
    )?;
    statement.execute(params![
        micros(record.at),
        record.actor,
        record.action,
        record.subject,
        record.detail.to_string()
    ])?;
    Ok(())
}

/// In the order in which they were written, which clocks that are set back do not change.
pub(super) fn newest(connection: &Connection, most: u32) -> Result<Vec<AuditRecord>, StoreError> {
    let mut query = connection.prepare_cached(
        "SELECT at, actor, action, subject, detail FROM audit ORDER BY number DESC LIMIT ?",
    )?;
    query.query_and_then([most], entry)?.collect()
}

fn entry(row: &Row<'_>) -> Result<AuditRecord, StoreError> {
    Ok(AuditRecord {
        at: time_in(row, "at")?,
        actor: row.get("actor")?,
        action: row.get("action")?,
        subject: row.get("subject")?,
        detail: json_in(row, "detail")?,
    })
}
