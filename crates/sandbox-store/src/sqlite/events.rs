use sqlx::{QueryBuilder, SqliteConnection, SqlitePool};

use super::value::integer;
use crate::{StoreError, StoredEvent};

/// So many go into one statement: each statement is a way to the database's thread and back.
const TOGETHER: usize = 256;

pub(super) async fn write(
    connection: &mut SqliteConnection,
    execution: &str,
    events: &[StoredEvent],
) -> Result<(), StoreError> {
    for part in events.chunks(TOGETHER) {
        let mut query = QueryBuilder::new("INSERT INTO events (execution, seq, json) ");
        query.push_values(part, |mut row, event| {
            row.push_bind(execution.to_owned())
                .push_bind(integer(event.seq))
                .push_bind(event.json.clone());
        });
        // Its text depends on how many there are: it would only push others out of the cache.
        query.build().persistent(false).execute(&mut *connection).await?;
    }
    Ok(())
}

pub(super) async fn read(
    readers: &SqlitePool,
    execution: &str,
    after: u64,
    most: u32,
) -> Result<Vec<StoredEvent>, StoreError> {
    let rows = sqlx::query_as::<_, (i64, String)>(
        "SELECT seq, json FROM events WHERE execution = ? AND seq > ? ORDER BY seq LIMIT ?",
    )
    .bind(execution)
    .bind(integer(after))
    .bind(most)
    .fetch_all(readers)
    .await?;
    rows.into_iter()
        .map(|(seq, json)| {
            let seq = u64::try_from(seq)
                .map_err(|_| StoreError::Damaged(format!("{execution} has an event {seq}")))?;
            Ok(StoredEvent { seq, json })
        })
        .collect()
}
