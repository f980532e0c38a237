use chrono::{DateTime, Utc};
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqlitePool};

use super::value::{micros, time_if_any, time_in};
use crate::{KeyRecord, NewKey, Scope, StoreError};

pub(super) async fn add(writer: &SqlitePool, key: NewKey) -> Result<(), StoreError> {
    let scopes: Vec<_> = key.scopes.iter().map(|scope| scope.name()).collect();
    sqlx::query("INSERT INTO keys (id, name, hash, scopes, created_at) VALUES (?, ?, ?, ?, ?)")
        .bind(key.id)
        .bind(key.name)
        .bind(key.hash)
        .bind(scopes.join(","))
        .bind(micros(key.created_at))
        .execute(writer)
        .await?;
    Ok(())
}

pub(super) async fn all(readers: &SqlitePool) -> Result<Vec<KeyRecord>, StoreError> {
    let rows = sqlx::query(
        "SELECT id, name, hash, scopes, created_at, revoked_at FROM keys ORDER BY created_at, id",
    )
    .fetch_all(readers)
    .await?;
    rows.iter().map(record).collect()
}

pub(super) async fn revoke(
    writer: &SqlitePool,
    id: &str,
    at: DateTime<Utc>,
) -> Result<bool, StoreError> {
    let revoked = sqlx::query("UPDATE keys SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL")
        .bind(micros(at))
        .bind(id)
        .execute(writer)
        .await?;
    Ok(revoked.rows_affected() == 1)
}

fn record(row: &SqliteRow) -> Result<KeyRecord, StoreError> {
    let scopes: &str = row.try_get("scopes")?;
    Ok(KeyRecord {
        id: row.try_get("id")?,
        name: row.try_get("name")?,
        hash: row.try_get("hash")?,
        scopes: scopes
            .split_terminator(',')
            // A scope that we do not know is not left out: the key would quietly mean another thing.
            .map(|name| {
                Scope::from_name(name)
                    .ok_or_else(|| StoreError::Damaged(format!("there is no scope {name}")))
            })
            .collect::<Result<_, _>>()?,
        created_at: time_in(row, "created_at")?,
        revoked_at: time_if_any(row, "revoked_at")?,
    })
}
