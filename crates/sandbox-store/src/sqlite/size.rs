use sqlx::SqlitePool;

use crate::StoreError;

/// Of the database itself; what waits in the write-ahead log is worked into it soon.
pub(super) async fn of(readers: &SqlitePool) -> Result<u64, StoreError> {
    let bytes: i64 = sqlx::query_scalar(
        "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()",
    )
    .fetch_one(readers)
    .await?;
    Ok(bytes.unsigned_abs())
}
