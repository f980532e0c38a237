use rusqlite::{Connection, params};

use super::value::integer;
use crate::{StoreError, StoredEvent};

pub(super) fn write(
    connection: &Connection,
    execution: &str,
    events: &[StoredEvent],
) -> Result<(), StoreError> {
    let mut statement =
        connection.prepare_cached("INSERT INTO events (execution, seq, json) VALUES (?, ?, ?)")?;
    for event in events {
        statement.execute(params![execution, integer(event.seq), event.json])?;
    }
    Ok(())
}

pub(super) fn read(
    connection: &Connection,
    execution: &str,
    after: u64,
    most: u32,
) -> Result<Vec<StoredEvent>, StoreError> {
    let mut query = connection.prepare_cached(
        "SELECT seq, json FROM events WHERE execution = ? AND seq > ? ORDER BY seq LIMIT ?",
    )?;
    let rows = query.query_and_then(params![execution, integer(after), most], |row| {
        let seq: i64 = row.get(0)?;
        let seq = u64::try_from(seq)
            .map_err(|_| StoreError::Damaged(format!("{execution} has an event {seq}")))?;
        Ok(StoredEvent { seq, json: row.get(1)? })
    })?;
    rows.collect()
}
