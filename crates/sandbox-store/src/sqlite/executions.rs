use chrono::{DateTime, Utc};
use rusqlite::{Connection, OptionalExtension, Row, params};
use sandbox_core::Status;

use super::value::{json_if_any, json_in, micros, size, time_if_any, time_in};
use super::{audit, callbacks, events};
use crate::{Ending, ExecutionRecord, Glance, Idempotency, Inserted, NewExecution, StoreError};

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
pub(super) use select;

pub(super) fn insert(connection: &Connection, new: &NewExecution) -> Result<Inserted, StoreError> {
    if let Some(idempotency) = &new.idempotency
        && let Some(before) = asked_before(connection, new, idempotency)?
    {
        return Ok(before);
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
    Ok(Inserted::New)
}

fn asked_before(
    connection: &Connection,
    new: &NewExecution,
    idempotency: &Idempotency,
) -> Result<Option<Inserted>, StoreError> {
    let mut query = connection.prepare_cached(
        "SELECT body_hash, execution FROM idempotency WHERE owner = ? AND key = ?",
    )?;
    let before = query
        .query_row(params![new.owner.as_deref().unwrap_or_default(), idempotency.key], |row| {
            Ok((row.get::<_, String>(0)?, row.get(1)?))
        });
    Ok(before.optional()?.map(|(body_hash, execution)| {
        if body_hash == idempotency.body_hash {
            Inserted::Before(execution)
        } else {
            Inserted::Conflict
        }
    }))
}

fn insert_row(connection: &Connection, new: &NewExecution) -> Result<(), StoreError> {
    let labels = serde_json::json!(new.labels).to_string();
    let status = if new.begun_at.is_some() { Status::Running } else { Status::Queued };
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
        u32::from(new.begun_at.is_some()),
        micros(new.created_at),
        new.begun_at.map(micros),
        size(&new.request) + size(&labels),
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

pub(super) fn glance(connection: &Connection, id: &str) -> Result<Option<Glance>, StoreError> {
    let mut query =
        connection.prepare_cached("SELECT owner, status FROM executions WHERE id = ?")?;
    let glance = |row: &Row<'_>| {
        Ok(Glance { owner: row.get("owner")?, status: status(&row.get::<_, String>("status")?)? })
    };
    query.query_and_then([id], glance)?.next().transpose()
}

pub(super) fn unfinished(connection: &Connection) -> Result<Vec<ExecutionRecord>, StoreError> {
    let mut query =
        connection.prepare_cached(select!("WHERE finished_at IS NULL ORDER BY created_at, id"))?;
    query.query_and_then((), record)?.collect()
}

pub(super) fn begin(
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

pub(super) fn put_back(connection: &Connection, id: &str) -> Result<(), StoreError> {
    let mut statement = connection.prepare_cached(
        "UPDATE executions SET status = 'queued', started_at = NULL \
         WHERE id = ? AND finished_at IS NULL",
    )?;
    statement.execute([id])?;
    Ok(())
}

pub(super) fn finish(connection: &Connection, ending: &Ending) -> Result<bool, StoreError> {
    let bytes =
        size(&ending.report) + ending.events.iter().map(|event| size(&event.json)).sum::<i64>();
    let mut statement = connection.prepare_cached(
        "UPDATE executions SET status = ?, report = ?, finished_at = ?, bytes = bytes + ? \
         WHERE id = ? AND finished_at IS NULL",
    )?;
    let updated = statement.execute(params![
        ending.status.name(),
        &*ending.report,
        micros(ending.at),
        bytes,
        ending.id
    ])?;
    if updated == 0 {
        return Ok(false);
    }
    events::write(connection, &ending.id, &ending.events)?;
    audit::write(connection, &ending.audit)?;
    Ok(true)
}

pub(super) fn record(row: &Row<'_>) -> Result<ExecutionRecord, StoreError> {
    Ok(ExecutionRecord {
        id: row.get("id")?,
        owner: row.get("owner")?,
        language: row.get("language")?,
        request: json_in(row, "request")?,
        status: status(&row.get::<_, String>("status")?)?,
        labels: json_in(row, "labels")?,
        priority: row.get("priority")?,
        attempts: row.get("attempts")?,
        created_at: time_in(row, "created_at")?,
        started_at: time_if_any(row, "started_at")?,
        finished_at: time_if_any(row, "finished_at")?,
        report: json_if_any(row, "report")?,
    })
}

fn status(name: &str) -> Result<Status, StoreError> {
    serde_json::from_value(name.into())
        .map_err(|error| StoreError::Damaged(format!("status: {error}")))
}
