/// Why a store operation failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// SQLite returned an error.
    #[error("database operation failed")]
    Database(#[from] rusqlite::Error),
    /// A value read from the database is not valid.
    #[error("corrupt record in the database: {0}")]
    Corrupt(String),
    /// A later version of this program wrote the file.
    #[error("the database has a newer schema than this version supports: upgrade this program")]
    NewerSchema,
    /// The store was closed, or its thread has ended.
    #[error("the store is closed")]
    Closed,
    /// The cursor of a listing is not one that an earlier page returned. Clients send it, so it is a client error.
    #[error("invalid value; use the cursor that the previous page returned")]
    InvalidCursor,
    /// The directory or file of the database cannot be used.
    #[error("cannot use the database {path}")]
    Open {
        /// The path of the database.
        path: String,
        /// The error of the operating system or of SQLite.
        #[source]
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
}
