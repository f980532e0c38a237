use crate::StoreError;
use rusqlite::Connection;

/// Of the database itself; what waits in the write-ahead log is worked into it soon.
pub(super) fn of(connection: &Connection) -> Result<u64, StoreError> {
    let mut query = connection.prepare_cached(
        "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()",
    )?;
    let bytes: i64 = query.query_row((), |row| row.get(0))?;
    Ok(bytes.unsigned_abs())
}
