use chrono::{DateTime, Utc};
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqlitePool};

use super::value::{json_in, micros, time_in};
use crate::{AuditRecord, StoreError};

pub(super) async fn write(writer: &SqlitePool, record: AuditRecord) -> Result<(), StoreError> {
    sqlx::query("INSERT INTO audit (at, actor, action, subject, detail) VALUES (?, ?, ?, ?, ?)")
        .bind(micros(record.at))
        .bind(record.actor)
        .bind(record.action)
        .bind(record.subject)
        .bind(record.detail.to_string())
        .execute(writer)
        .await?;
    Ok(())
}

/// In the order in which they were written, which clocks that are set back do not change.
pub(super) async fn newest(
    readers: &SqlitePool,
    most: u32,
) -> Result<Vec<AuditRecord>, StoreError> {
    let rows = sqlx::query(
        "SELECT at, actor, action, subject, detail FROM audit ORDER BY number DESC LIMIT ?",
    )
    .bind(most)
    .fetch_all(readers)
    .await?;
    rows.iter().map(entry).collect()
}

/// So many of the first entries are looked at in one step: between two steps others may write.
const STEP: u32 = 1000;

/// Removes what was written before this, and tells how much. The log is in the order of time but for
/// clocks that were set, so that its beginning is all there is to look at, and needs no index, which
/// every execution would pay for.
pub(super) async fn forget(writer: &SqlitePool, bound: DateTime<Utc>) -> Result<u64, StoreError> {
    let mut forgotten = 0;
    loop {
        let step = sqlx::query(
            "DELETE FROM audit WHERE at < ? AND number IN \
             (SELECT number FROM audit ORDER BY number LIMIT ?)",
        )
        .bind(micros(bound))
        .bind(STEP)
        .execute(writer)
        .await?;
        if step.rows_affected() == 0 {
            return Ok(forgotten);
        }
        forgotten += step.rows_affected();
    }
}

fn entry(row: &SqliteRow) -> Result<AuditRecord, StoreError> {
    Ok(AuditRecord {
        at: time_in(row, "at")?,
        actor: row.try_get("actor")?,
        action: row.try_get("action")?,
        subject: row.try_get("subject")?,
        detail: json_in(row, "detail")?,
    })
}
