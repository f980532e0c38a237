use rusqlite::{Connection, params};

use super::columns::integer;
use crate::{StoreError, StoredEvent};

/// The maximum size of a row, unless a single event is larger: readers load whole rows.
const MAX_CHUNK_BYTES: usize = 64 * 1024;

/// The events of one row.
struct Chunk {
    first: u64,
    last: u64,
    /// One event per line: JSON text contains no line breaks.
    lines: String,
}

pub(super) fn write(
    connection: &Connection,
    execution: &str,
    events: &[StoredEvent],
) -> Result<(), StoreError> {
    let mut statement = connection.prepare_cached(
        "INSERT INTO event_chunks (execution, first, last, events) VALUES (?, ?, ?, ?)",
    )?;
    for chunk in chunks(events)? {
        let (first, last) = (integer(chunk.first), integer(chunk.last));
        statement.execute(params![execution, first, last, chunk.lines])?;
    }
    Ok(())
}

fn chunks(events: &[StoredEvent]) -> Result<Vec<Chunk>, StoreError> {
    let mut chunks: Vec<Chunk> = Vec::new();
    for event in events {
        match chunks.last_mut() {
            Some(chunk) if chunk.last + 1 != event.seq => {
                let reason = format!("event {} follows event {}", event.seq, chunk.last);
                return Err(StoreError::Corrupt(reason));
            }
            Some(chunk) if chunk.lines.len() + event.json.len() < MAX_CHUNK_BYTES => {
                chunk.last = event.seq;
                chunk.lines.push('\n');
                chunk.lines.push_str(&event.json);
            }
            _ => {
                let (first, lines) = (event.seq, event.json.clone());
                chunks.push(Chunk { first, last: first, lines });
            }
        }
    }
    Ok(chunks)
}

pub(super) fn read(
    connection: &Connection,
    execution: &str,
    after: u64,
    limit: u32,
) -> Result<Vec<StoredEvent>, StoreError> {
    let mut query = connection.prepare_cached(
        "SELECT first, events FROM event_chunks WHERE execution = ? AND last > ? ORDER BY first",
    )?;
    let mut rows = query.query(params![execution, integer(after)])?;
    let mut events = Vec::new();
    while let Some(row) = rows.next()? {
        let first: i64 = row.get(0)?;
        let first = u64::try_from(first).map_err(|_| {
            StoreError::Corrupt(format!("{execution} has an event with number {first}"))
        })?;
        let lines: String = row.get(1)?;
        for (seq, json) in (first..).zip(lines.split('\n')) {
            if events.len() == limit as usize {
                return Ok(events);
            }
            if seq > after {
                events.push(StoredEvent { seq, json: json.to_owned() });
            }
        }
    }
    Ok(events)
}
