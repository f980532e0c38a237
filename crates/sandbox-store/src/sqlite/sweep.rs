use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use sqlx::SqlitePool;

use super::value::{integer, micros};
use super::{SqliteStore, WRITE, audit};
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
    let too_old = too_old(&store.readers, retention, now).await?;
    let too_much = too_much(&store.readers, retention).await?;
    // Nothing is less than any cut, so the larger one is what has to go for either reason.
    if let Some(cut) = too_old.max(too_much) {
        loop {
            let step = remove_some(&store.writer, &cut).await?;
            if step.executions == 0 {
                break;
            }
            swept.executions += step.executions;
            swept.idempotency += step.idempotency;
            // Gives the pages that became free back to the system.
            sqlx::query("PRAGMA incremental_vacuum").execute(&store.writer).await?;
        }
    }
    swept.idempotency += forget_names(&store.writer, now).await?;
    if let Some(bound) = before(now, retention.audit) {
        swept.audit = audit::forget(&store.writer, bound).await?;
    }
    Ok(swept)
}

/// What happened earlier is older than this; none if the age is beyond the calendar, which is no bound.
fn before(now: DateTime<Utc>, age: Duration) -> Option<DateTime<Utc>> {
    now.checked_sub_signed(TimeDelta::from_std(age).ok()?)
}

async fn too_old(
    readers: &SqlitePool,
    retention: Retention,
    now: DateTime<Utc>,
) -> Result<Option<Cut>, StoreError> {
    let Some(bound) = before(now, retention.age) else {
        return Ok(None);
    };
    let cut = sqlx::query_as(
        "SELECT finished_at, id FROM executions WHERE finished_at < ? \
         ORDER BY finished_at DESC, id DESC LIMIT 1",
    )
    .bind(micros(bound))
    .fetch_optional(readers)
    .await?;
    Ok(cut)
}

/// Adds up sizes from the newest on; the first with which it is too much is the cut.
async fn too_much(readers: &SqlitePool, retention: Retention) -> Result<Option<Cut>, StoreError> {
    let cut = sqlx::query_as(
        "SELECT finished_at, id FROM ( \
             SELECT finished_at, id, sum(bytes) OVER (ORDER BY finished_at DESC, id DESC) AS total \
             FROM executions WHERE finished_at IS NOT NULL \
         ) WHERE total > ? ORDER BY finished_at DESC, id DESC LIMIT 1",
    )
    .bind(integer(retention.bytes))
    .fetch_optional(readers)
    .await?;
    Ok(cut)
}

/// Removes the oldest up to the cut, with their events, labels and idempotency records.
async fn remove_some(writer: &SqlitePool, cut: &Cut) -> Result<Swept, StoreError> {
    let mut transaction = writer.begin_with(WRITE).await?;
    // The tables that refer to executions would lose these rows anyway; here they are counted.
    let idempotency =
        sqlx::query(concat!("DELETE FROM idempotency WHERE execution IN ", oldest!()))
            .bind(cut.0)
            .bind(&cut.1)
            .bind(STEP)
            .execute(&mut *transaction)
            .await?;
    let executions = sqlx::query(concat!("DELETE FROM executions WHERE id IN ", oldest!()))
        .bind(cut.0)
        .bind(&cut.1)
        .bind(STEP)
        .execute(&mut *transaction)
        .await?;
    transaction.commit().await?;
    Ok(Swept {
        executions: executions.rows_affected(),
        idempotency: idempotency.rows_affected(),
        audit: 0,
    })
}

async fn forget_names(writer: &SqlitePool, now: DateTime<Utc>) -> Result<u64, StoreError> {
    let forgotten = sqlx::query("DELETE FROM idempotency WHERE created_at < ?")
        .bind(micros(now - IDEMPOTENCY))
        .execute(writer)
        .await?;
    Ok(forgotten.rows_affected())
}
