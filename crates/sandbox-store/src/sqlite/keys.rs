use chrono::{DateTime, Utc};
use rusqlite::{Connection, Row, params};

use super::value::{micros, time_if_any, time_in};
use crate::{KeyRecord, NewKey, Permission, Permissions, Scope, StoreError};

pub(super) fn add(connection: &Connection, key: &NewKey) -> Result<(), StoreError> {
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
            // A scope that we do not know is not left out: the key would quietly mean another thing.
            .map(|name| {
                Scope::from_name(name)
                    .ok_or_else(|| StoreError::Damaged(format!("there is no scope {name}")))
            })
            .collect::<Result<_, _>>()?,
        permissions: permissions
            .split_terminator(',')
            .map(|name| {
                Permission::from_name(name)
                    .ok_or_else(|| StoreError::Damaged(format!("there is no permission {name}")))
            })
            .collect::<Result<_, _>>()?,
        created_at: time_in(row, "created_at")?,
        revoked_at: time_if_any(row, "revoked_at")?,
    })
}
