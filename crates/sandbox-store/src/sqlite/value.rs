//! Between what records hold and what columns hold.

use chrono::{DateTime, Utc};
use rusqlite::Row;
use serde::de::DeserializeOwned;

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
pub(super) fn time_in(row: &Row<'_>, column: &str) -> Result<DateTime<Utc>, StoreError> {
    time(row.get(column)?)
}

/// The time in this column, if there is one.
pub(super) fn time_if_any(
    row: &Row<'_>,
    column: &str,
) -> Result<Option<DateTime<Utc>>, StoreError> {
    row.get::<_, Option<i64>>(column)?.map(time).transpose()
}

/// What the JSON in this column says.
pub(super) fn json_in<T: DeserializeOwned>(row: &Row<'_>, column: &str) -> Result<T, StoreError> {
    json(column, row.get_ref(column)?.as_str().map_err(|_| not_text(column))?)
}

/// What the JSON in this column says, if there is any.
pub(super) fn json_if_any<T: DeserializeOwned>(
    row: &Row<'_>,
    column: &str,
) -> Result<Option<T>, StoreError> {
    let text = row.get_ref(column)?.as_str_or_null().map_err(|_| not_text(column))?;
    text.map(|text| json(column, text)).transpose()
}

fn json<T: DeserializeOwned>(column: &str, text: &str) -> Result<T, StoreError> {
    serde_json::from_str(text).map_err(|error| StoreError::Damaged(format!("{column}: {error}")))
}

fn not_text(column: &str) -> StoreError {
    StoreError::Damaged(format!("{column} is not text"))
}

/// A length or a number as columns have it. Those of ours are far below the bound.
pub(super) fn integer(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A sum or a count in this column, none of which is below zero.
pub(super) fn total(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    row.get(column).map(i64::unsigned_abs)
}

/// How much room a text takes.
pub(super) fn size(text: &str) -> i64 {
    integer(text.len() as u64)
}
