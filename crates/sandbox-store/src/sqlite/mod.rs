//! The embedded store: one SQLite file.
//!
//! SQLite has one writer at a time whatever one does, so there is one connection that writes and
//! callers wait for it in turn, instead of in the database's own polling. Readers have connections of
//! their own and, by the write-ahead log, neither wait for the writer nor hold it up.
//!
//! A commit is in the log before it is answered: it survives the death of this process at any
//! moment. With `synchronous = NORMAL` the log is flushed to the disk at checkpoints only, so that a
//! power failure may take the last moments with it, but never damages the file.

mod audit;
mod events;
mod executions;
mod keys;
mod open;
mod size;
mod sweep;
mod value;

use std::path::Path;

use chrono::{DateTime, Utc};
use sandbox_core::Status;
use serde_json::Value;
use sqlx::SqlitePool;

use crate::{
    Answer, AuditRecord, ExecutionFilter, ExecutionRecord, Inserted, KeyRecord, NewExecution,
    NewKey, Page, Retention, Store, StoreError, StoredEvent, Swept,
};

/// How a transaction that writes begins: it takes the lock at once, since one that read first could
/// not take it later if another process wrote meanwhile.
const WRITE: &str = "BEGIN IMMEDIATE";

/// A store in one SQLite file. Several processes may have it open at once.
#[derive(Clone, Debug)]
pub struct SqliteStore {
    /// The one connection that writes.
    writer: SqlitePool,
    /// Connections that cannot write.
    readers: SqlitePool,
}

impl SqliteStore {
    /// Opens the database in this file, making it, and directories on the way to it, if they are not
    /// there. Only the user we run as can read what we make.
    pub async fn open(path: &Path) -> Result<Self, StoreError> {
        open::open(path).await
    }

    /// Waits for what is under way and closes the file. Nothing is lost without it; the log is worked
    /// into the file, and the next start has less to do.
    pub async fn close(&self) {
        self.readers.close().await;
        self.writer.close().await;
    }
}

impl Store for SqliteStore {
    fn insert(&self, new: NewExecution) -> Answer<'_, Inserted> {
        Box::pin(executions::insert(&self.writer, new))
    }

    fn execution<'a>(&'a self, id: &'a str) -> Answer<'a, Option<ExecutionRecord>> {
        Box::pin(executions::get(&self.readers, id))
    }

    fn list(&self, filter: ExecutionFilter) -> Answer<'_, Page> {
        Box::pin(executions::list(&self.readers, filter))
    }

    fn begin<'a>(&'a self, id: &'a str, at: DateTime<Utc>) -> Answer<'a, ()> {
        Box::pin(executions::begin(&self.writer, id, at))
    }

    fn put_back<'a>(&'a self, id: &'a str) -> Answer<'a, ()> {
        Box::pin(executions::put_back(&self.writer, id))
    }

    fn finish<'a>(
        &'a self,
        id: &'a str,
        status: Status,
        report: Value,
        events: Vec<StoredEvent>,
        at: DateTime<Utc>,
    ) -> Answer<'a, bool> {
        Box::pin(executions::finish(&self.writer, id, status, report, events, at))
    }

    fn events<'a>(&'a self, id: &'a str, after: u64, most: u32) -> Answer<'a, Vec<StoredEvent>> {
        Box::pin(events::read(&self.readers, id, after, most))
    }

    fn unfinished(&self) -> Answer<'_, Vec<ExecutionRecord>> {
        Box::pin(executions::unfinished(&self.readers))
    }

    fn add_key(&self, key: NewKey) -> Answer<'_, ()> {
        Box::pin(keys::add(&self.writer, key))
    }

    fn keys(&self) -> Answer<'_, Vec<KeyRecord>> {
        Box::pin(keys::all(&self.readers))
    }

    fn revoke_key<'a>(&'a self, id: &'a str, at: DateTime<Utc>) -> Answer<'a, bool> {
        Box::pin(keys::revoke(&self.writer, id, at))
    }

    fn audit(&self, record: AuditRecord) -> Answer<'_, ()> {
        Box::pin(audit::write(&self.writer, record))
    }

    fn audit_log(&self, most: u32) -> Answer<'_, Vec<AuditRecord>> {
        Box::pin(audit::newest(&self.readers, most))
    }

    fn sweep(&self, retention: Retention, now: DateTime<Utc>) -> Answer<'_, Swept> {
        Box::pin(sweep::sweep(self, retention, now))
    }

    fn size(&self) -> Answer<'_, u64> {
        Box::pin(size::of(&self.readers))
    }

    fn ping(&self) -> Answer<'_, ()> {
        Box::pin(async {
            // A query on a table, not a constant: it reads the file.
            sqlx::query("SELECT 1 FROM executions LIMIT 1").fetch_optional(&self.readers).await?;
            Ok(())
        })
    }
}
