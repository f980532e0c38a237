use chrono::{DateTime, Utc};
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

/// So many of the first entries are looked at in one step: between two steps others may write.
const STEP: u32 = 1000;

/// Removes some of what was written before this, and tells how much. The log is in the order of time but
/// for clocks that were set, so that its beginning is all there is to look at, and needs no index, which
/// every execution would pay for.
pub(super) fn forget_some(
    connection: &Connection,
    bound: DateTime<Utc>,
) -> Result<u64, StoreError> {
    let forgotten = connection
        .prepare_cached(
            "DELETE FROM audit WHERE at < ? AND number IN \
             (SELECT number FROM audit ORDER BY number LIMIT ?)",
        )?
        .execute(params![micros(bound), STEP])?;
    Ok(forgotten as u64)
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
