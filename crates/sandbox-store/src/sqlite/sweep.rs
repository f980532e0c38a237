use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use rusqlite::{Connection, OptionalExtension, params};

use super::columns::{get_total, integer, micros};
use super::{SqliteStore, audit};
use crate::{Retention, StoreError, Swept};

/// The number of executions removed in one transaction. Other writes run in between.
const BATCH_SIZE: u32 = 200;

/// How long a client may repeat a request with the same idempotency key.
const IDEMPOTENCY_RETENTION: TimeDelta = TimeDelta::days(1);

/// The newest execution to be removed; all older ones go with it.
#[derive(Clone, Debug)]
struct Cutoff {
    finished_at: i64,
    id: String,
    /// Whose executions are removed; those of all owners if none.
    owner: Option<Owner>,
}

/// An owner; none for clients without a key.
type Owner = Option<String>;

/// Selects the oldest executions up to a cutoff.
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
    let by_age = store.read(move |connection| cutoff_by_age(connection, retention, now)).await?;
    if let Some(cutoff) = by_age {
        remove_up_to(store, cutoff, &mut swept).await?;
    }
    let by_size = store.read(move |connection| cutoffs_by_size(connection, retention)).await?;
    for cutoff in by_size {
        remove_up_to(store, cutoff, &mut swept).await?;
    }
    swept.idempotency +=
        store.write(move |connection| remove_expired_idempotency(connection, now)).await?;
    if let Some(before) = minus(now, retention.audit) {
        loop {
            let removed =
                store.write(move |connection| audit::remove_before(connection, before)).await?;
            if removed == 0 {
                break;
            }
            swept.audit += removed;
        }
    }
    swept.audit += audit::remove_excess(store, retention.audit_entries).await?;
    Ok(swept)
}

async fn remove_up_to(
    store: &SqliteStore,
    cutoff: Cutoff,
    swept: &mut Swept,
) -> Result<(), StoreError> {
    loop {
        let cutoff = cutoff.clone();
        let removed = store.write(move |connection| remove_batch(connection, &cutoff)).await?;
        if removed.executions == 0 {
            return Ok(());
        }
        swept.executions += removed.executions;
        swept.idempotency += removed.idempotency;
    }
}

/// Returns the time `age` before now; none if it is out of range, which means no limit.
fn minus(now: DateTime<Utc>, age: Duration) -> Option<DateTime<Utc>> {
    now.checked_sub_signed(TimeDelta::from_std(age).ok()?)
}

fn cutoff_by_age(
    connection: &Connection,
    retention: Retention,
    now: DateTime<Utc>,
) -> Result<Option<Cutoff>, StoreError> {
    let Some(before) = minus(now, retention.age) else {
        return Ok(None);
    };
    let mut query = connection.prepare_cached(
        "SELECT finished_at, id FROM executions WHERE finished_at < ? \
         ORDER BY finished_at DESC, id DESC LIMIT 1",
    )?;
    let cutoff = query.query_row([micros(before)], |row| {
        Ok(Cutoff { finished_at: row.get(0)?, id: row.get(1)?, owner: None })
    });
    Ok(cutoff.optional()?)
}

/// Returns a cutoff for each owner over its limits. The total size is shared fairly, so that no owner displaces
/// the executions of another.
fn cutoffs_by_size(
    connection: &Connection,
    retention: Retention,
) -> Result<Vec<Cutoff>, StoreError> {
    let mut query = connection.prepare_cached(
        "SELECT owner, sum(bytes), count(*) FROM executions WHERE finished_at IS NOT NULL \
         GROUP BY owner",
    )?;
    let owners =
        query.query_map((), |row| Ok((row.get(0)?, get_total(row, 1)?, get_total(row, 2)?)))?;
    let owners: Vec<(Owner, u64, u64)> = owners.collect::<Result<_, _>>()?;
    let sizes = owners.iter().map(|(_, bytes, _)| *bytes).collect();
    let max_bytes = fair_share(sizes, retention.bytes).min(retention.bytes_per_owner);
    let max_count = retention.executions_per_owner;
    let mut cutoffs = Vec::new();
    for (owner, bytes, count) in owners {
        if bytes > max_bytes || count > max_count {
            cutoffs.extend(cutoff_of_owner(connection, owner, max_bytes, max_count)?);
        }
    }
    Ok(cutoffs)
}

/// Adds up sizes and counts from the newest execution on; the first one over a limit is the cutoff.
fn cutoff_of_owner(
    connection: &Connection,
    owner: Owner,
    max_bytes: u64,
    max_count: u64,
) -> Result<Option<Cutoff>, StoreError> {
    let mut query = connection.prepare_cached(
        "SELECT finished_at, id FROM ( \
             SELECT finished_at, id, sum(bytes) OVER newest AS total, row_number() OVER newest AS number \
             FROM executions WHERE finished_at IS NOT NULL AND owner IS ? \
             WINDOW newest AS (ORDER BY finished_at DESC, id DESC) \
         ) WHERE total > ? OR number > ? ORDER BY finished_at DESC, id DESC LIMIT 1",
    )?;
    let cutoff = query.query_row(params![owner, integer(max_bytes), integer(max_count)], |row| {
        Ok((row.get(0)?, row.get(1)?))
    });
    let cutoff: Option<(i64, String)> = cutoff.optional()?;
    Ok(cutoff.map(|(finished_at, id)| Cutoff { finished_at, id, owner: Some(owner) }))
}

/// The maximum that each of several owners may keep, so that together they keep no more than `limit`: owners with
/// less keep all of theirs, and the others share the rest equally.
pub(super) fn fair_share(mut totals: Vec<u64>, limit: u64) -> u64 {
    totals.sort_unstable();
    let mut left = limit;
    for (index, total) in totals.iter().enumerate() {
        let share = left / (totals.len() - index) as u64;
        if *total > share {
            return share;
        }
        left -= total;
    }
    u64::MAX
}

/// Removes a batch of executions with their events, labels and idempotency records.
fn remove_batch(connection: &Connection, cutoff: &Cutoff) -> Result<Swept, StoreError> {
    let owner = cutoff.owner.as_ref().and_then(Option::as_deref);
    let values = params![cutoff.finished_at, cutoff.id, cutoff.owner.is_none(), owner, BATCH_SIZE];
    // Deleting the executions would cascade to these rows anyway; deleting them here counts them.
    let idempotency = connection
        .prepare_cached(concat!("DELETE FROM idempotency WHERE execution IN ", oldest!()))?
        .execute(values)?;
    let executions = connection
        .prepare_cached(concat!("DELETE FROM executions WHERE id IN ", oldest!()))?
        .execute(values)?;
    vacuum(connection)?;
    Ok(Swept { executions: executions as u64, idempotency: idempotency as u64, audit: 0 })
}

/// Returns free pages to the file system. Each row that is read frees one page.
fn vacuum(connection: &Connection) -> Result<(), StoreError> {
    let mut vacuum = connection.prepare_cached("PRAGMA incremental_vacuum")?;
    let mut pages = vacuum.query(())?;
    while pages.next()?.is_some() {}
    Ok(())
}

fn remove_expired_idempotency(
    connection: &Connection,
    now: DateTime<Utc>,
) -> Result<u64, StoreError> {
    let before = micros(now - IDEMPOTENCY_RETENTION);
    let removed = connection.execute("DELETE FROM idempotency WHERE created_at < ?", [before])?;
    Ok(removed as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_below_the_fair_share_keep_everything_and_the_others_share_the_rest() {
        assert_eq!(fair_share(vec![], 0), u64::MAX);
        assert_eq!(fair_share(vec![10, 20], 30), u64::MAX);
        assert_eq!(fair_share(vec![10, 1000], 100), 90);
        assert_eq!(fair_share(vec![1000, 10, 500], 110), 50);
        assert_eq!(fair_share(vec![1000, 900, 500], 90), 30);
        assert_eq!(fair_share(vec![5], 0), 0);
    }
}
