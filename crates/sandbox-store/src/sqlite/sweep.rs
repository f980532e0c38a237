use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use rusqlite::{Connection, OptionalExtension, params};

use super::value::{integer, micros};
use super::{SqliteStore, audit};
use crate::{Retention, StoreError, Swept};

/// So many executions go in one step: between two steps others may write.
const STEP: u32 = 200;

/// How long a client may ask again under the same name without starting it twice.
const IDEMPOTENCY: TimeDelta = TimeDelta::days(1);

/// The newest execution that has to go, as when it ended and its id: all older ones go with it.
type Cut = (i64, String);

/// The oldest executions up to a cut, at most so many.
macro_rules! oldest {
    () => {
        "(SELECT id FROM executions WHERE finished_at IS NOT NULL \
         AND (finished_at, id) <= (?, ?) ORDER BY finished_at, id LIMIT ?)"
    };
}

pub(super) async fn sweep(
    store: &SqliteStore,
    retention: Retention,
    now: DateTime<Utc>,
) -> Result<Swept, StoreError> {
    let mut swept = Swept::default();
    let cut = store.read(move |connection| {
        // Nothing is less than any cut, so the larger one is what has to go for either reason.
        Ok(too_old(connection, retention, now)?.max(too_much(connection, retention)?))
    });
    if let Some(cut) = cut.await? {
        loop {
            let cut = cut.clone();
            let step = store.write(move |connection| remove_some(connection, &cut)).await?;
            if step.executions == 0 {
                break;
            }
            swept.executions += step.executions;
            swept.idempotency += step.idempotency;
        }
    }
    swept.idempotency += store.write(move |connection| forget_names(connection, now)).await?;
    if let Some(bound) = before(now, retention.audit) {
        loop {
            let step = store.write(move |connection| audit::forget_some(connection, bound)).await?;
            if step == 0 {
                break;
            }
            swept.audit += step;
        }
    }
    Ok(swept)
}

/// What happened earlier is older than this; none if the age is beyond the calendar, which is no bound.
fn before(now: DateTime<Utc>, age: Duration) -> Option<DateTime<Utc>> {
    now.checked_sub_signed(TimeDelta::from_std(age).ok()?)
}

fn too_old(
    connection: &Connection,
    retention: Retention,
    now: DateTime<Utc>,
) -> Result<Option<Cut>, StoreError> {
    let Some(bound) = before(now, retention.age) else {
        return Ok(None);
    };
    let mut query = connection.prepare_cached(
        "SELECT finished_at, id FROM executions WHERE finished_at < ? \
         ORDER BY finished_at DESC, id DESC LIMIT 1",
    )?;
    let cut = query.query_row([micros(bound)], |row| Ok((row.get(0)?, row.get(1)?)));
    Ok(cut.optional()?)
}

/// Adds up sizes from the newest on; the first with which it is too much is the cut.
fn too_much(connection: &Connection, retention: Retention) -> Result<Option<Cut>, StoreError> {
    let mut query = connection.prepare_cached(
        "SELECT finished_at, id FROM ( \
             SELECT finished_at, id, sum(bytes) OVER (ORDER BY finished_at DESC, id DESC) AS total \
             FROM executions WHERE finished_at IS NOT NULL \
         ) WHERE total > ? ORDER BY finished_at DESC, id DESC LIMIT 1",
    )?;
    let cut = query.query_row([integer(retention.bytes)], |row| Ok((row.get(0)?, row.get(1)?)));
    Ok(cut.optional()?)
}

/// Removes the oldest up to the cut, with their events, labels and idempotency records.
fn remove_some(connection: &Connection, cut: &Cut) -> Result<Swept, StoreError> {
    // The tables that refer to executions would lose these rows anyway; here they are counted.
    let idempotency = connection
        .prepare_cached(concat!("DELETE FROM idempotency WHERE execution IN ", oldest!()))?
        .execute(params![cut.0, cut.1, STEP])?;
    let executions = connection
        .prepare_cached(concat!("DELETE FROM executions WHERE id IN ", oldest!()))?
        .execute(params![cut.0, cut.1, STEP])?;
    give_pages_back(connection)?;
    Ok(Swept { executions: executions as u64, idempotency: idempotency as u64, audit: 0 })
}

/// Gives the pages that became free back to the system: one with each row that is read.
fn give_pages_back(connection: &Connection) -> Result<(), StoreError> {
    let mut vacuum = connection.prepare_cached("PRAGMA incremental_vacuum")?;
    let mut pages = vacuum.query(())?;
    while pages.next()?.is_some() {}
    Ok(())
}

fn forget_names(connection: &Connection, now: DateTime<Utc>) -> Result<u64, StoreError> {
    let forgotten = connection
        .execute("DELETE FROM idempotency WHERE created_at < ?", [micros(now - IDEMPOTENCY)])?;
    Ok(forgotten as u64)
}
