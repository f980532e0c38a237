use chrono::{DateTime, Utc};
use sqlx::sqlite::SqliteRow;
use sqlx::{QueryBuilder, Row, Sqlite, SqliteConnection, SqlitePool};

use super::value::micros;
use crate::{Busy, CallbackEnd, DueCallback, NewExecution, StoreError};

/// Writes down what was promised with an execution, in the transaction that accepts it.
pub(super) async fn insert(
    connection: &mut SqliteConnection,
    new: &NewExecution,
) -> Result<(), StoreError> {
    let Some(callback) = &new.callback else {
        return Ok(());
    };
    sqlx::query("INSERT INTO callbacks (execution, url, host, due_at) VALUES (?, ?, ?, ?)")
        .bind(&new.id)
        .bind(&callback.url)
        .bind(&callback.host)
        .bind(micros(new.created_at))
        .execute(connection)
        .await?;
    Ok(())
}

pub(super) async fn due(
    readers: &SqlitePool,
    now: DateTime<Utc>,
    busy: Busy,
    most: u32,
) -> Result<Vec<DueCallback>, StoreError> {
    let mut query = QueryBuilder::new(
        "SELECT execution, owner, url, host, tries FROM callbacks \
         JOIN executions ON id = execution \
         WHERE finished_at IS NOT NULL AND due_at <= ",
    );
    query.push_bind(micros(now));
    leave_out(&mut query, "host", busy.hosts);
    // The empty text stands for nobody, whom NULL would leave out of every comparison.
    let owners = busy.owners.into_iter().map(Option::unwrap_or_default).collect();
    leave_out(&mut query, "coalesce(owner, '')", owners);
    query.push(" ORDER BY due_at, execution LIMIT ").push_bind(most);
    let rows = query.build().persistent(false).fetch_all(readers).await?;
    rows.iter().map(record).collect()
}

fn leave_out(query: &mut QueryBuilder<Sqlite>, column: &str, values: Vec<String>) {
    query.push(" AND ").push(column).push(" NOT IN (");
    let mut list = query.separated(", ");
    for value in values {
        list.push_bind(value);
    }
    query.push(")");
}

pub(super) async fn tried(
    writer: &SqlitePool,
    id: &str,
    end: CallbackEnd,
) -> Result<(), StoreError> {
    let statement = match end {
        CallbackEnd::Over => sqlx::query("DELETE FROM callbacks WHERE execution = ?"),
        CallbackEnd::Again(at) => {
            sqlx::query("UPDATE callbacks SET tries = tries + 1, due_at = ? WHERE execution = ?")
                .bind(micros(at))
        }
    };
    // A sweep may have taken it meanwhile, which is no failure.
    statement.bind(id).execute(writer).await?;
    Ok(())
}

fn record(row: &SqliteRow) -> Result<DueCallback, StoreError> {
    Ok(DueCallback {
        execution: row.try_get("execution")?,
        owner: row.try_get("owner")?,
        url: row.try_get("url")?,
        host: row.try_get("host")?,
        tries: row.try_get("tries")?,
    })
}
