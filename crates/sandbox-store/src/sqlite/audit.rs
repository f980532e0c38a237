use chrono::{DateTime, Utc};
use rusqlite::{Connection, Row, params};

use super::SqliteStore;
use super::value::{integer, json_in, micros, time_in, total};
use crate::fair::fair_share;
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

/// Removes the oldest entries until no more than this are left, and tells how many that were. The actors with the
/// most entries lose theirs: nobody drives out the traces of others.
pub(super) async fn shrink(store: &SqliteStore, most: u64) -> Result<u64, StoreError> {
    let excess = store.read(move |connection| excess(connection, most)).await?;
    let mut forgotten = 0;
    for (actor, mut count) in excess {
        while count > 0 {
            let (actor, step) = (actor.clone(), count.min(STEP.into()));
            let removed =
                store.write(move |connection| forget_oldest(connection, actor.as_deref(), step));
            let removed = removed.await?;
            if removed == 0 {
                break;
            }
            forgotten += removed;
            count -= removed.min(count);
        }
    }
    Ok(forgotten)
}

/// How many entries each actor has too many.
fn excess(connection: &Connection, most: u64) -> Result<Vec<(Option<String>, u64)>, StoreError> {
    // Two looks at the ends are as good as counting, as long as that says that there are few.
    let span: u64 = connection.query_row(
        "SELECT coalesce((SELECT max(number) FROM audit) - (SELECT min(number) FROM audit) + 1, 0)",
        (),
        |row| total(row, 0),
    )?;
    if span <= most {
        return Ok(Vec::new());
    }
    let mut query =
        connection.prepare_cached("SELECT actor, count(*) FROM audit GROUP BY actor")?;
    let counts = query.query_map((), |row| Ok((row.get(0)?, total(row, 1)?)))?;
    let counts: Vec<(Option<String>, u64)> = counts.collect::<Result<_, _>>()?;
    let share = fair_share(counts.iter().map(|(_, count)| *count).collect(), most);
    let over = counts.into_iter().map(|(actor, count)| (actor, count.saturating_sub(share)));
    Ok(over.filter(|(_, excess)| *excess > 0).collect())
}

fn forget_oldest(
    connection: &Connection,
    actor: Option<&str>,
    most: u64,
) -> Result<u64, StoreError> {
    let forgotten = connection
        .prepare_cached(
            "DELETE FROM audit WHERE number IN \
             (SELECT number FROM audit WHERE actor IS ? ORDER BY number LIMIT ?)",
        )?
        .execute(params![actor, integer(most)])?;
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
