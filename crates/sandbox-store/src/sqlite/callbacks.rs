use chrono::{DateTime, Utc};
use rusqlite::{Connection, Row, params, params_from_iter};

use super::columns::micros;
use super::query::Query;
use crate::{CallbackExclusions, CallbackUpdate, DueCallback, NewExecution, StoreError};

/// Inserts the callback of an execution, in the transaction that inserts the execution.
pub(super) fn insert(connection: &Connection, new: &NewExecution) -> Result<(), StoreError> {
    if let Some(callback) = &new.callback {
        connection
            .prepare_cached(
                "INSERT INTO callbacks (execution, url, host, due_at) VALUES (?, ?, ?, ?)",
            )?
            .execute(params![new.id, callback.url, callback.host, micros(new.created_at)])?;
    }
    Ok(())
}

pub(super) fn due(
    connection: &Connection,
    now: DateTime<Utc>,
    excluded: CallbackExclusions,
    limit: u32,
) -> Result<Vec<DueCallback>, StoreError> {
    let mut query = Query::new(
        "SELECT execution, owner, url, host, tries FROM callbacks \
         JOIN executions ON id = execution WHERE finished_at IS NOT NULL",
    );
    query.and("due_at <= ?", [micros(now).into()]);
    query.and_not_in("host", excluded.hosts);
    // The empty text stands for no owner: NULL NOT IN (...) is never true.
    let owners = excluded.owners.into_iter().map(Option::unwrap_or_default).collect();
    query.and_not_in("coalesce(owner, '')", owners);
    query.append(" ORDER BY due_at, execution LIMIT ?", [limit.into()]);
    let mut statement = connection.prepare(&query.text)?;
    statement.query_and_then(params_from_iter(query.values), record)?.collect()
}

pub(super) fn update(
    connection: &Connection,
    id: &str,
    update: CallbackUpdate,
) -> Result<(), StoreError> {
    // A sweep may have removed the row meanwhile, which is not an error.
    match update {
        CallbackUpdate::Done => {
            connection.execute("DELETE FROM callbacks WHERE execution = ?", [id])?;
        }
        CallbackUpdate::RetryAt(at) => {
            connection.execute(
                "UPDATE callbacks SET tries = tries + 1, due_at = ? WHERE execution = ?",
                params![micros(at), id],
            )?;
        }
    }
    Ok(())
}

fn record(row: &Row<'_>) -> Result<DueCallback, StoreError> {
    Ok(DueCallback {
        execution: row.get("execution")?,
        owner: row.get("owner")?,
        url: row.get("url")?,
        host: row.get("host")?,
        tries: row.get("tries")?,
    })
}
