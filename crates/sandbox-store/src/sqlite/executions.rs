use chrono::{DateTime, Utc};
use rusqlite::{Connection, OptionalExtension, Row, params};
use sandbox_core::Status;

use super::columns::{byte_len, get_json, get_optional_json, get_optional_time, get_time, micros};
use super::{audit, callbacks, events};
use crate::{
    ExecutionRecord, ExecutionSummary, FinishedExecution, Idempotency, InsertOutcome, NewExecution,
    StoreError,
};

/// A query for whole executions, ending in this clause.
macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT id, owner, language, status, priority, attempts, created_at, started_at, \
             finished_at, labels, request, report FROM executions ",
            $rest
        )
    };
}
pub(super) use select;

pub(super) fn insert(
    connection: &Connection,
    new: &NewExecution,
) -> Result<InsertOutcome, StoreError> {
    if let Some(idempotency) = &new.idempotency
        && let Some(outcome) = find_duplicate(connection, new.owner.as_deref(), idempotency)?
    {
        return Ok(outcome);
    }
    insert_row(connection, new)?;
    insert_labels(connection, new)?;
    callbacks::insert(connection, new)?;
    if let Some(idempotency) = &new.idempotency {
        let mut statement = connection.prepare_cached(
            "INSERT INTO idempotency (owner, key, body_hash, execution, created_at) \
             VALUES (?, ?, ?, ?, ?)",
        )?;
        statement.execute(params![
            new.owner.as_deref().unwrap_or_default(),
            idempotency.key,
            idempotency.body_hash,
            new.id,
            micros(new.created_at)
        ])?;
    }
    Ok(InsertOutcome::New)
}

pub(super) fn find_duplicate(
    connection: &Connection,
    owner: Option<&str>,
    idempotency: &Idempotency,
) -> Result<Option<InsertOutcome>, StoreError> {
    let mut query = connection.prepare_cached(
        "SELECT body_hash, execution FROM idempotency WHERE owner = ? AND key = ?",
    )?;
    let found = query.query_row(params![owner.unwrap_or_default(), idempotency.key], |row| {
        Ok((row.get::<_, String>(0)?, row.get(1)?))
    });
    Ok(found.optional()?.map(|(body_hash, execution)| {
        if body_hash == idempotency.body_hash {
            InsertOutcome::Duplicate(execution)
        } else {
            InsertOutcome::Conflict
        }
    }))
}

fn insert_row(connection: &Connection, new: &NewExecution) -> Result<(), StoreError> {
    let labels = serde_json::json!(new.labels).to_string();
    let status = if new.started_at.is_some() { Status::Running } else { Status::Queued };
    let mut statement = connection.prepare_cached(
        "INSERT INTO executions (id, owner, language, status, priority, attempts, created_at, \
         started_at, bytes, labels, request) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    )?;
    statement.execute(params![
        new.id,
        new.owner,
        new.language,
        status.name(),
        new.priority,
        u32::from(new.started_at.is_some()),
        micros(new.created_at),
        new.started_at.map(micros),
        byte_len(&new.request) + byte_len(&labels),
        labels,
        new.request
    ])?;
    Ok(())
}

fn insert_labels(connection: &Connection, new: &NewExecution) -> Result<(), StoreError> {
    for (name, value) in &new.labels {
        connection
            .prepare_cached("INSERT INTO labels (execution, name, value) VALUES (?, ?, ?)")?
            .execute(params![new.id, name, value])?;
    }
    Ok(())
}

pub(super) fn get(
    connection: &Connection,
    id: &str,
) -> Result<Option<ExecutionRecord>, StoreError> {
    let mut query = connection.prepare_cached(select!("WHERE id = ?"))?;
    query.query_and_then([id], record)?.next().transpose()
}

pub(super) fn summary(
    connection: &Connection,
    id: &str,
) -> Result<Option<ExecutionSummary>, StoreError> {
    let mut query =
        connection.prepare_cached("SELECT owner, status FROM executions WHERE id = ?")?;
    let summary = |row: &Row<'_>| {
        Ok(ExecutionSummary {
            owner: row.get("owner")?,
            status: status(&row.get::<_, String>("status")?)?,
        })
    };
    query.query_and_then([id], summary)?.next().transpose()
}

pub(super) fn unfinished(connection: &Connection) -> Result<Vec<ExecutionRecord>, StoreError> {
    let mut query =
        connection.prepare_cached(select!("WHERE finished_at IS NULL ORDER BY created_at, id"))?;
    query.query_and_then((), record)?.collect()
}

pub(super) fn mark_running(
    connection: &Connection,
    id: &str,
    at: DateTime<Utc>,
) -> Result<(), StoreError> {
    let mut statement = connection.prepare_cached(
        "UPDATE executions SET status = 'running', attempts = attempts + 1, started_at = ? \
         WHERE id = ? AND finished_at IS NULL",
    )?;
    statement.execute(params![micros(at), id])?;
    Ok(())
}

pub(super) fn requeue(connection: &Connection, id: &str) -> Result<(), StoreError> {
    let mut statement = connection.prepare_cached(
        "UPDATE executions SET status = 'queued', started_at = NULL \
         WHERE id = ? AND finished_at IS NULL",
    )?;
    statement.execute([id])?;
    Ok(())
}

pub(super) fn finish(
    connection: &Connection,
    finished: &FinishedExecution,
) -> Result<bool, StoreError> {
    let events = finished.events.iter().map(|event| byte_len(&event.json)).sum::<i64>();
    let bytes = byte_len(&finished.report) + events;
    let mut statement = connection.prepare_cached(
        "UPDATE executions SET status = ?, report = ?, finished_at = ?, bytes = bytes + ? \
         WHERE id = ? AND finished_at IS NULL",
    )?;
    let updated = statement.execute(params![
        finished.status.name(),
        &*finished.report,
        micros(finished.at),
        bytes,
        finished.id
    ])?;
    if updated == 0 {
        return Ok(false);
    }
    events::write(connection, &finished.id, &finished.events)?;
    audit::write(connection, &finished.audit)?;
    Ok(true)
}

pub(super) fn record(row: &Row<'_>) -> Result<ExecutionRecord, StoreError> {
    Ok(ExecutionRecord {
        id: row.get("id")?,
        owner: row.get("owner")?,
        language: row.get("language")?,
        request: get_json(row, "request")?,
        status: status(&row.get::<_, String>("status")?)?,
        labels: get_json(row, "labels")?,
        priority: row.get("priority")?,
        attempts: row.get("attempts")?,
        created_at: get_time(row, "created_at")?,
        started_at: get_optional_time(row, "started_at")?,
        finished_at: get_optional_time(row, "finished_at")?,
        report: get_optional_json(row, "report")?,
    })
}

fn status(name: &str) -> Result<Status, StoreError> {
    serde_json::from_value(name.into())
        .map_err(|error| StoreError::Corrupt(format!("status: {error}")))
}
