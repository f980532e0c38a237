use chrono::{DateTime, Utc};
use rusqlite::{Connection, Row, params, params_from_iter};

use super::query::Query;
use super::value::micros;
use crate::{Busy, CallbackEnd, DueCallback, NewExecution, StoreError};

/// Writes down what was promised with an execution, in the transaction that accepts it.
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
    busy: Busy,
    most: u32,
) -> Result<Vec<DueCallback>, StoreError> {
    let mut query = Query::new(
        "SELECT execution, owner, url, host, tries FROM callbacks \
         JOIN executions ON id = execution WHERE finished_at IS NOT NULL",
    );
    query.and("due_at <= ?", [micros(now).into()]);
    query.and_not_in("host", busy.hosts);
    // The empty text stands for nobody, whom NULL would leave out of every comparison.
    let owners = busy.owners.into_iter().map(Option::unwrap_or_default).collect();
    query.and_not_in("coalesce(owner, '')", owners);
    query.then(" ORDER BY due_at, execution LIMIT ?", [most.into()]);
    let mut statement = connection.prepare(&query.text)?;
    statement.query_and_then(params_from_iter(query.values), record)?.collect()
}

pub(super) fn tried(connection: &Connection, id: &str, end: CallbackEnd) -> Result<(), StoreError> {
    // A sweep may have taken it meanwhile, which is no failure.
    match end {
        CallbackEnd::Over => {
            connection.execute("DELETE FROM callbacks WHERE execution = ?", [id])?;
        }
        CallbackEnd::Again(at) => {
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
