//! Conversions between fields of records and columns.

use chrono::{DateTime, Utc};
use rusqlite::Row;
use serde::de::DeserializeOwned;

use crate::StoreError;

/// Converts a time to microseconds since 1970, the precision of PostgreSQL too.
pub(super) fn micros(time: DateTime<Utc>) -> i64 {
    time.timestamp_micros()
}

fn time(micros: i64) -> Result<DateTime<Utc>, StoreError> {
    DateTime::from_timestamp_micros(micros)
        .ok_or_else(|| StoreError::Corrupt(format!("{micros} is not a time")))
}

/// Reads a time.
pub(super) fn get_time(row: &Row<'_>, column: &str) -> Result<DateTime<Utc>, StoreError> {
    time(row.get(column)?)
}

/// Reads a time that may be NULL.
pub(super) fn get_optional_time(
    row: &Row<'_>,
    column: &str,
) -> Result<Option<DateTime<Utc>>, StoreError> {
    row.get::<_, Option<i64>>(column)?.map(time).transpose()
}

/// Parses JSON text.
pub(super) fn get_json<T: DeserializeOwned>(row: &Row<'_>, column: &str) -> Result<T, StoreError> {
    json(column, row.get_ref(column)?.as_str().map_err(|_| not_text(column))?)
}

/// Parses JSON text that may be NULL.
pub(super) fn get_optional_json<T: DeserializeOwned>(
    row: &Row<'_>,
    column: &str,
) -> Result<Option<T>, StoreError> {
    let text = row.get_ref(column)?.as_str_or_null().map_err(|_| not_text(column))?;
    text.map(|text| json(column, text)).transpose()
}

fn json<T: DeserializeOwned>(column: &str, text: &str) -> Result<T, StoreError> {
    serde_json::from_str(text).map_err(|error| StoreError::Corrupt(format!("{column}: {error}")))
}

fn not_text(column: &str) -> StoreError {
    StoreError::Corrupt(format!("{column} is not text"))
}

/// Converts a number to SQLite's integer type, saturating.
pub(super) fn integer(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Reads a sum or a count, which is never negative.
pub(super) fn get_total(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    row.get(column).map(i64::unsigned_abs)
}

/// The length of a text in bytes.
pub(super) fn byte_len(text: &str) -> i64 {
    integer(text.len() as u64)
}
