/// Why the store did not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The database said no.
    #[error("the database failed")]
    Database(#[from] rusqlite::Error),
    /// What was read is not what was written.
    #[error("a record in the database is damaged: {0}")]
    Damaged(String),
    /// The file was written by a later version of this program.
    #[error("the database is of a later version: this program is too old for it")]
    Newer,
    /// The store was closed, or what does its work has ended.
    #[error("the store is closed")]
    Closed,
    /// The place in a listing is not one that a page told. Clients choose it, so it is their mistake.
    #[error("this is not a place in a listing")]
    Cursor,
    /// The directory or file of the database cannot be used.
    #[error("cannot use the database {path}")]
    Open {
        /// Where.
        path: String,
        /// What the system said.
        #[source]
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
}
