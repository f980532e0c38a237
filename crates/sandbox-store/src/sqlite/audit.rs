use chrono::{DateTime, Utc};
use rusqlite::{Connection, Row, params};

use super::SqliteStore;
use super::columns::{get_json, get_time, get_total, integer, micros};
use super::sweep::fair_share;
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

/// Returns the newest entries by insertion order, which does not change if the clock is set back.
pub(super) fn newest(connection: &Connection, limit: u32) -> Result<Vec<AuditRecord>, StoreError> {
    let mut query = connection.prepare_cached(
        "SELECT at, actor, action, subject, detail FROM audit ORDER BY number DESC LIMIT ?",
    )?;
    query.query_and_then([limit], record)?.collect()
}

/// The number of entries examined or removed in one transaction. Other writes run in between.
const BATCH_SIZE: u32 = 1000;

/// Removes a batch of entries older than `before` and returns their number. The log is ordered by time unless the
/// clock was set, so only its beginning is examined. That needs no index, whose cost every execution would pay.
pub(super) fn remove_before(
    connection: &Connection,
    before: DateTime<Utc>,
) -> Result<u64, StoreError> {
    let removed = connection
        .prepare_cached(
            "DELETE FROM audit WHERE at < ? AND number IN \
             (SELECT number FROM audit ORDER BY number LIMIT ?)",
        )?
        .execute(params![micros(before), BATCH_SIZE])?;
    Ok(removed as u64)
}

/// Removes the oldest entries until at most `limit` are left, and returns their number. The actors with the most
/// entries lose theirs, so that no actor can flush the entries of others out of the log.
pub(super) async fn remove_excess(store: &SqliteStore, limit: u64) -> Result<u64, StoreError> {
    let excess = store.read(move |connection| excess_by_actor(connection, limit)).await?;
    let mut removed = 0;
    for (actor, mut count) in excess {
        while count > 0 {
            let (actor, batch) = (actor.clone(), count.min(BATCH_SIZE.into()));
            let batch =
                store.write(move |connection| remove_oldest(connection, actor.as_deref(), batch));
            let batch = batch.await?;
            if batch == 0 {
                break;
            }
            removed += batch;
            count -= batch.min(count);
        }
    }
    Ok(removed)
}

/// Returns the actors over their fair share, and by how many entries.
fn excess_by_actor(
    connection: &Connection,
    limit: u64,
) -> Result<Vec<(Option<String>, u64)>, StoreError> {
    // The range of the numbers is an upper bound of the count and much cheaper.
    let span: u64 = connection.query_row(
        "SELECT coalesce((SELECT max(number) FROM audit) - (SELECT min(number) FROM audit) + 1, 0)",
        (),
        |row| get_total(row, 0),
    )?;
    if span <= limit {
        return Ok(Vec::new());
    }
    let mut query =
        connection.prepare_cached("SELECT actor, count(*) FROM audit GROUP BY actor")?;
    let counts = query.query_map((), |row| Ok((row.get(0)?, get_total(row, 1)?)))?;
    let counts: Vec<(Option<String>, u64)> = counts.collect::<Result<_, _>>()?;
    let share = fair_share(counts.iter().map(|(_, count)| *count).collect(), limit);
    let over = counts.into_iter().map(|(actor, count)| (actor, count.saturating_sub(share)));
    Ok(over.filter(|(_, excess)| *excess > 0).collect())
}

fn remove_oldest(
    connection: &Connection,
    actor: Option<&str>,
    limit: u64,
) -> Result<u64, StoreError> {
    let removed = connection
        .prepare_cached(
            "DELETE FROM audit WHERE number IN \
             (SELECT number FROM audit WHERE actor IS ? ORDER BY number LIMIT ?)",
        )?
        .execute(params![actor, integer(limit)])?;
    Ok(removed as u64)
}

fn record(row: &Row<'_>) -> Result<AuditRecord, StoreError> {
    Ok(AuditRecord {
        at: get_time(row, "at")?,
        actor: row.get("actor")?,
        action: row.get("action")?,
        subject: row.get("subject")?,
        detail: get_json(row, "detail")?,
    })
}
