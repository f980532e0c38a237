//! Between what records hold and what columns hold.

use chrono::{DateTime, Utc};
use serde::de::DeserializeOwned;
use sqlx::Row;
use sqlx::sqlite::SqliteRow;

use crate::StoreError;

/// A time as columns have it: to the microsecond, as PostgreSQL keeps times too.
pub(super) fn micros(time: DateTime<Utc>) -> i64 {
    time.timestamp_micros()
}

pub(super) fn time(micros: i64) -> Result<DateTime<Utc>, StoreError> {
    DateTime::from_timestamp_micros(micros)
        .ok_or_else(|| StoreError::Damaged(format!("{micros} is not a time")))
}

/// The time in this column, which must not be empty.
pub(super) fn time_in(row: &SqliteRow, column: &str) -> Result<DateTime<Utc>, StoreError> {
    time(row.try_get(column)?)
}

/// The time in this column, if there is one.
pub(super) fn time_if_any(
    row: &SqliteRow,
    column: &str,
) -> Result<Option<DateTime<Utc>>, StoreError> {
    row.try_get::<Option<i64>, _>(column)?.map(time).transpose()
}

/// What the JSON in this column says.
pub(super) fn json_in<T: DeserializeOwned>(row: &SqliteRow, column: &str) -> Result<T, StoreError> {
    json(column, row.try_get(column)?)
}

/// What this JSON, from this column, says.
pub(super) fn json<T: DeserializeOwned>(column: &str, text: &str) -> Result<T, StoreError> {
    serde_json::from_str(text).map_err(|error| StoreError::Damaged(format!("{column}: {error}")))
}

/// A length or a number as columns have it. Those of ours are far below the bound.
pub(super) fn integer(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// How much room a text takes.
pub(super) fn size(text: &str) -> i64 {
    integer(text.len() as u64)
}
