use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use rusqlite::{Connection, OptionalExtension, params};

use super::value::{integer, micros, total};
use super::{SqliteStore, audit};
use crate::fair::fair_share;
use crate::{Retention, StoreError, Swept};

/// So many executions go in one step: between two steps others may write.
const STEP: u32 = 200;

/// How long a client may ask again under the same name without starting it twice.
const IDEMPOTENCY: TimeDelta = TimeDelta::days(1);

/// The newest execution that has to go: all older ones go with it.
#[derive(Clone, Debug)]
struct Cut {
    finished_at: i64,
    id: String,
    /// Whose executions go; everybody's if there is none.
    owner: Option<Owner>,
}

/// An owner; none for clients without a key.
type Owner = Option<String>;

/// The oldest executions up to a cut, at most so many.
macro_rules! oldest {
    () => {
        "(SELECT id FROM executions WHERE finished_at IS NOT NULL \
         AND (finished_at, id) <= (?1, ?2) AND (?3 OR owner IS ?4) \
         ORDER BY finished_at, id LIMIT ?5)"
    };
}

pub(super) async fn sweep(
    store: &SqliteStore,
    retention: Retention,
    now: DateTime<Utc>,
) -> Result<Swept, StoreError> {
    let mut swept = Swept::default();
    let old = store.read(move |connection| too_old(connection, retention, now)).await?;
    if let Some(cut) = old {
        remove_all(store, cut, &mut swept).await?;
    }
    let many = store.read(move |connection| too_much(connection, retention)).await?;
    for cut in many {
        remove_all(store, cut, &mut swept).await?;
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
    swept.audit += audit::shrink(store, retention.audit_entries).await?;
    Ok(swept)
}

async fn remove_all(store: &SqliteStore, cut: Cut, swept: &mut Swept) -> Result<(), StoreError> {
    loop {
        let cut = cut.clone();
        let step = store.write(move |connection| remove_some(connection, &cut)).await?;
        if step.executions == 0 {
            return Ok(());
        }
        swept.executions += step.executions;
        swept.idempotency += step.idempotency;
    }
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
    let cut = query.query_row([micros(bound)], |row| {
        Ok(Cut { finished_at: row.get(0)?, id: row.get(1)?, owner: None })
    });
    Ok(cut.optional()?)
}

/// A cut for each owner that has more than it may have. The room of all is shared fairly, so that nobody
/// drives out what is another's.
fn too_much(connection: &Connection, retention: Retention) -> Result<Vec<Cut>, StoreError> {
    let mut query = connection.prepare_cached(
        "SELECT owner, sum(bytes), count(*) FROM executions WHERE finished_at IS NOT NULL \
         GROUP BY owner",
    )?;
    let owners = query.query_map((), |row| Ok((row.get(0)?, total(row, 1)?, total(row, 2)?)))?;
    let owners: Vec<(Owner, u64, u64)> = owners.collect::<Result<_, _>>()?;
    let totals = owners.iter().map(|(_, bytes, _)| *bytes).collect();
    let bytes = fair_share(totals, retention.bytes).min(retention.bytes_per_owner);
    let count = retention.executions_per_owner;
    let mut cuts = Vec::new();
    for (owner, ..) in owners.into_iter().filter(|(_, size, many)| *size > bytes || *many > count) {
        cuts.extend(cut_of_owner(connection, owner, bytes, count)?);
    }
    Ok(cuts)
}

/// Adds up sizes from the newest on; the first with which it is too much is the cut.
fn cut_of_owner(
    connection: &Connection,
    owner: Owner,
    bytes: u64,
    count: u64,
) -> Result<Option<Cut>, StoreError> {
    let mut query = connection.prepare_cached(
        "SELECT finished_at, id FROM ( \
             SELECT finished_at, id, sum(bytes) OVER newest AS total, row_number() OVER newest AS number \
             FROM executions WHERE finished_at IS NOT NULL AND owner IS ? \
             WINDOW newest AS (ORDER BY finished_at DESC, id DESC) \
         ) WHERE total > ? OR number > ? ORDER BY finished_at DESC, id DESC LIMIT 1",
    )?;
    let cut = query.query_row(params![owner, integer(bytes), integer(count)], |row| {
        Ok((row.get(0)?, row.get(1)?))
    });
    let cut: Option<(i64, String)> = cut.optional()?;
    Ok(cut.map(|(finished_at, id)| Cut { finished_at, id, owner: Some(owner) }))
}

/// Removes the oldest up to the cut, with their events, labels and idempotency records.
fn remove_some(connection: &Connection, cut: &Cut) -> Result<Swept, StoreError> {
    let owner = cut.owner.as_ref().and_then(Option::as_deref);
    let values = params![cut.finished_at, cut.id, cut.owner.is_none(), owner, STEP];
    // The tables that refer to executions would lose these rows anyway; here they are counted.
    let idempotency = connection
        .prepare_cached(concat!("DELETE FROM idempotency WHERE execution IN ", oldest!()))?
        .execute(values)?;
    let executions = connection
        .prepare_cached(concat!("DELETE FROM executions WHERE id IN ", oldest!()))?
        .execute(values)?;
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
