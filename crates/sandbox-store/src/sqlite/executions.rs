use chrono::{DateTime, Utc};
use sandbox_core::Status;
use serde_json::Value;
use sqlx::sqlite::SqliteRow;
use sqlx::{QueryBuilder, Row, Sqlite, SqliteConnection, SqlitePool};

use super::value::{json, json_in, micros, size, time_if_any, time_in};
use super::{WRITE, callbacks, events};
use crate::cursor::Cursor;
use crate::{
    ExecutionFilter, ExecutionRecord, Idempotency, Inserted, NewExecution, Page, StoreError,
    StoredEvent,
};

/// A query for whole executions, which ends in these words.
macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT id, owner, language, status, priority, attempts, created_at, started_at, \
             finished_at, labels, request, report FROM executions ",
            $rest
        )
    };
}

/// No page is longer, whatever was asked for: a page is held in memory whole.
const LONGEST_PAGE: u32 = 1000;

pub(super) async fn insert(writer: &SqlitePool, new: NewExecution) -> Result<Inserted, StoreError> {
    if new.labels.is_empty() && new.idempotency.is_none() && new.callback.is_none() {
        // The common case is one statement, and needs no transaction around it.
        insert_row(&mut *writer.acquire().await?, &new).await?;
        return Ok(Inserted::New);
    }
    let mut transaction = writer.begin_with(WRITE).await?;
    if let Some(idempotency) = &new.idempotency
        && let Some(before) = asked_before(&mut transaction, &new, idempotency).await?
    {
        return Ok(before);
    }
    insert_row(&mut transaction, &new).await?;
    insert_labels(&mut transaction, &new).await?;
    callbacks::insert(&mut transaction, &new).await?;
    if let Some(idempotency) = &new.idempotency {
        sqlx::query(
            "INSERT INTO idempotency (owner, key, body_hash, execution, created_at) \
             VALUES (?, ?, ?, ?, ?)",
        )
        .bind(new.owner.as_deref().unwrap_or_default())
        .bind(&idempotency.key)
        .bind(&idempotency.body_hash)
        .bind(&new.id)
        .bind(micros(new.created_at))
        .execute(&mut *transaction)
        .await?;
    }
    transaction.commit().await?;
    Ok(Inserted::New)
}

async fn asked_before(
    connection: &mut SqliteConnection,
    new: &NewExecution,
    idempotency: &Idempotency,
) -> Result<Option<Inserted>, StoreError> {
    let before = sqlx::query_as::<_, (String, String)>(
        "SELECT body_hash, execution FROM idempotency WHERE owner = ? AND key = ?",
    )
    .bind(new.owner.as_deref().unwrap_or_default())
    .bind(&idempotency.key)
    .fetch_optional(connection)
    .await?;
    Ok(before.map(|(body_hash, execution)| {
        if body_hash == idempotency.body_hash {
            Inserted::Before(execution)
        } else {
            Inserted::Conflict
        }
    }))
}

async fn insert_row(
    connection: &mut SqliteConnection,
    new: &NewExecution,
) -> Result<(), StoreError> {
    let request = new.request.to_string();
    let labels = serde_json::json!(new.labels).to_string();
    sqlx::query(
        "INSERT INTO executions \
         (id, owner, language, status, priority, created_at, bytes, labels, request) \
         VALUES (?, ?, ?, 'queued', ?, ?, ?, ?, ?)",
    )
    .bind(&new.id)
    .bind(&new.owner)
    .bind(&new.language)
    .bind(new.priority)
    .bind(micros(new.created_at))
    .bind(size(&request) + size(&labels))
    .bind(labels)
    .bind(request)
    .execute(connection)
    .await?;
    Ok(())
}

async fn insert_labels(
    connection: &mut SqliteConnection,
    new: &NewExecution,
) -> Result<(), StoreError> {
    for (name, value) in &new.labels {
        sqlx::query("INSERT INTO labels (execution, name, value) VALUES (?, ?, ?)")
            .bind(&new.id)
            .bind(name)
            .bind(value)
            .execute(&mut *connection)
            .await?;
    }
    Ok(())
}

pub(super) async fn get(
    readers: &SqlitePool,
    id: &str,
) -> Result<Option<ExecutionRecord>, StoreError> {
    let row = sqlx::query(select!("WHERE id = ?")).bind(id).fetch_optional(readers).await?;
    row.as_ref().map(record).transpose()
}

pub(super) async fn unfinished(readers: &SqlitePool) -> Result<Vec<ExecutionRecord>, StoreError> {
    let rows = sqlx::query(select!("WHERE finished_at IS NULL ORDER BY created_at, id"))
        .fetch_all(readers)
        .await?;
    rows.iter().map(record).collect()
}

pub(super) async fn list(
    readers: &SqlitePool,
    filter: ExecutionFilter,
) -> Result<Page, StoreError> {
    let limit = filter.limit.clamp(1, LONGEST_PAGE) as usize;
    // One more than asked for tells whether there is another page.
    let rows = matching(&filter, limit + 1)?.build().persistent(false).fetch_all(readers).await?;
    let executions: Vec<_> = rows.iter().take(limit).map(record).collect::<Result<_, _>>()?;
    let next = match executions.last() {
        Some(last) if rows.len() > limit => Some(Cursor::after(last).to_string()),
        _ => None,
    };
    Ok(Page { executions, next })
}

fn matching(filter: &ExecutionFilter, most: usize) -> Result<QueryBuilder<Sqlite>, StoreError> {
    let mut query = QueryBuilder::new(select!("WHERE TRUE"));
    if let Some(owner) = &filter.owner {
        // `IS`, since nobody is an owner too.
        query.push(" AND owner IS ").push_bind(owner.clone());
    }
    if let Some(language) = &filter.language {
        query.push(" AND language = ").push_bind(language.clone());
    }
    if let Some(status) = filter.status {
        query.push(" AND status = ").push_bind(status.name());
    }
    for (name, value) in &filter.labels {
        query
            .push(" AND EXISTS (SELECT 1 FROM labels WHERE execution = executions.id AND name = ")
            .push_bind(name.clone())
            .push(" AND value = ")
            .push_bind(value.clone())
            .push(")");
    }
    if let Some(since) = filter.since {
        query.push(" AND created_at >= ").push_bind(micros(since));
    }
    if let Some(until) = filter.until {
        query.push(" AND created_at < ").push_bind(micros(until));
    }
    if let Some(cursor) = &filter.cursor {
        let cursor: Cursor = cursor.parse()?;
        query
            .push(" AND (created_at, id) < (")
            .push_bind(cursor.created_at)
            .push(", ")
            .push_bind(cursor.id)
            .push(")");
    }
    query.push(" ORDER BY created_at DESC, id DESC LIMIT ");
    query.push_bind(i64::try_from(most).unwrap_or(i64::MAX));
    Ok(query)
}

pub(super) async fn begin(
    writer: &SqlitePool,
    id: &str,
    at: DateTime<Utc>,
) -> Result<(), StoreError> {
    sqlx::query(
        "UPDATE executions SET status = 'running', attempts = attempts + 1, started_at = ? \
         WHERE id = ? AND finished_at IS NULL",
    )
    .bind(micros(at))
    .bind(id)
    .execute(writer)
    .await?;
    Ok(())
}

pub(super) async fn put_back(writer: &SqlitePool, id: &str) -> Result<(), StoreError> {
    sqlx::query(
        "UPDATE executions SET status = 'queued', started_at = NULL \
         WHERE id = ? AND finished_at IS NULL",
    )
    .bind(id)
    .execute(writer)
    .await?;
    Ok(())
}

pub(super) async fn finish(
    writer: &SqlitePool,
    id: &str,
    status: Status,
    report: Value,
    events: Vec<StoredEvent>,
    at: DateTime<Utc>,
) -> Result<bool, StoreError> {
    let report = report.to_string();
    let bytes = size(&report) + events.iter().map(|event| size(&event.json)).sum::<i64>();
    let mut transaction = writer.begin_with(WRITE).await?;
    let updated = sqlx::query(
        "UPDATE executions SET status = ?, report = ?, finished_at = ?, bytes = bytes + ? \
         WHERE id = ? AND finished_at IS NULL",
    )
    .bind(status.name())
    .bind(report)
    .bind(micros(at))
    .bind(bytes)
    .bind(id)
    .execute(&mut *transaction)
    .await?;
    if updated.rows_affected() == 0 {
        return Ok(false);
    }
    events::write(&mut transaction, id, &events).await?;
    transaction.commit().await?;
    Ok(true)
}

fn record(row: &SqliteRow) -> Result<ExecutionRecord, StoreError> {
    let status: &str = row.try_get("status")?;
    let report: Option<&str> = row.try_get("report")?;
    Ok(ExecutionRecord {
        id: row.try_get("id")?,
        owner: row.try_get("owner")?,
        language: row.try_get("language")?,
        request: json_in(row, "request")?,
        status: serde_json::from_value(status.into())
            .map_err(|error| StoreError::Damaged(format!("status: {error}")))?,
        labels: json_in(row, "labels")?,
        priority: row.try_get("priority")?,
        attempts: row.try_get("attempts")?,
        created_at: time_in(row, "created_at")?,
        started_at: time_if_any(row, "started_at")?,
        finished_at: time_if_any(row, "finished_at")?,
        report: report.map(|text| json("report", text)).transpose()?,
    })
}
