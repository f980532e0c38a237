use chrono::{DateTime, Utc};
use rusqlite::{Connection, Row, params};

use super::columns::{get_optional_time, get_time, micros};
use crate::{KeyRecord, Permission, Permissions, Scope, StoreError};

pub(super) fn add(connection: &Connection, key: &KeyRecord) -> Result<(), StoreError> {
    let scopes: Vec<_> = key.scopes.iter().map(|scope| scope.name()).collect();
    connection.execute(
        "INSERT INTO keys (id, name, hash, scopes, permissions, created_at) \
         VALUES (?, ?, ?, ?, ?, ?)",
        params![
            key.id,
            key.name,
            key.hash,
            scopes.join(","),
            Permission::join(&key.permissions),
            micros(key.created_at)
        ],
    )?;
    Ok(())
}

pub(super) fn all(connection: &Connection) -> Result<Vec<KeyRecord>, StoreError> {
    let mut query = connection.prepare_cached(
        "SELECT id, name, hash, scopes, permissions, created_at, revoked_at FROM keys \
         ORDER BY created_at, id",
    )?;
    query.query_and_then((), record)?.collect()
}

pub(super) fn revoke(
    connection: &Connection,
    id: &str,
    at: DateTime<Utc>,
) -> Result<bool, StoreError> {
    let revoked = connection.execute(
        "UPDATE keys SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL",
        params![micros(at), id],
    )?;
    Ok(revoked == 1)
}

pub(super) fn set_permissions(
    connection: &Connection,
    id: &str,
    permissions: &Permissions,
) -> Result<bool, StoreError> {
    let changed = connection.execute(
        "UPDATE keys SET permissions = ? WHERE id = ? AND revoked_at IS NULL",
        params![Permission::join(permissions), id],
    )?;
    Ok(changed == 1)
}

fn record(row: &Row<'_>) -> Result<KeyRecord, StoreError> {
    let scopes: String = row.get("scopes")?;
    let permissions: String = row.get("permissions")?;
    Ok(KeyRecord {
        id: row.get("id")?,
        name: row.get("name")?,
        hash: row.get("hash")?,
        scopes: scopes
            .split_terminator(',')
            // An unknown scope is an error: a key must not silently lose a part of its meaning.
            .map(|name| {
                Scope::from_name(name)
                    .ok_or_else(|| StoreError::Corrupt(format!("unknown scope {name}")))
            })
            .collect::<Result<_, _>>()?,
        permissions: permissions
            .split_terminator(',')
            .map(|name| {
                Permission::from_name(name)
                    .ok_or_else(|| StoreError::Corrupt(format!("unknown permission {name}")))
            })
            .collect::<Result<_, _>>()?,
        created_at: get_time(row, "created_at")?,
        revoked_at: get_optional_time(row, "revoked_at")?,
    })
}
