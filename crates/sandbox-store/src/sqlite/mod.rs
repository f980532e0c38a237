//! The embedded store: one SQLite file.
//!
//! One thread writes ([`writer`]). Readers have connections of their own ([`reader_pool`]); thanks to the write-ahead
//! log they neither wait for the writer nor block it.
//!
//! A write is in the log before its future completes, so it survives a crash of the process. With
//! `synchronous = NORMAL` the log is flushed to disk at checkpoints only ([`checkpointer`]): a power failure may
//! lose the last writes, but never corrupts the file.

mod audit;
mod callbacks;
mod checkpointer;
mod columns;
mod events;
mod executions;
mod health;
mod keys;
mod listing;
mod migrations;
mod open;
mod query;
mod reader_pool;
mod sweep;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use chrono::{DateTime, Utc};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use rusqlite::Connection;

use self::checkpointer::Checkpointer;
use self::reader_pool::ReaderPool;
use self::writer::Writer;
use crate::{
    AuditRecord, CallbackExclusions, CallbackUpdate, DueCallback, ExecutionFilter, ExecutionRecord,
    ExecutionSummary, FinishedExecution, Idempotency, InsertOutcome, KeyRecord, NewExecution, Page,
    Permissions, Retention, Store, StoreError, StoreFuture, StoredEvent, Swept,
};

/// A store in one SQLite file. Several processes may have it open at once.
#[derive(Debug)]
pub struct SqliteStore {
    /// None after the store was closed.
    write_half: Mutex<Option<WriteHalf>>,
    readers: ReaderPool,
    path: PathBuf,
}

/// The threads that write to the database.
#[derive(Debug)]
struct WriteHalf {
    writer: Arc<Writer>,
    thread: JoinHandle<()>,
    checkpointer: Checkpointer,
}

impl SqliteStore {
    /// Opens the database in this file. Creates the file and its parent directories if they do not exist, readable
    /// by the current user only.
    pub async fn open(path: &Path) -> Result<Self, StoreError> {
        open::open(path).await
    }

    fn new(write_half: WriteHalf, path: PathBuf) -> Self {
        let readers = ReaderPool::new(path.clone());
        Self { write_half: Mutex::new(Some(write_half)), readers, path }
    }

    /// Completes the issued writes, checkpoints the log and closes the file. Without it nothing is lost, but the
    /// next start has more to do.
    pub async fn close(&self) {
        self.readers.close().await;
        let Some(WriteHalf { writer, thread, checkpointer }) = self.write_half().take() else {
            return;
        };
        // The writer last: SQLite checkpoints the log when the last connection is closed.
        let closing = tokio::task::spawn_blocking(move || {
            checkpointer.stop();
            drop(writer);
            thread.join()
        });
        // An error means a panic, which was printed when it happened.
        let _ = closing.await;
    }

    /// Issues a write.
    fn write<T: Send + 'static>(
        &self,
        work: impl FnMut(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> StoreFuture<'static, T> {
        self.write_sized(0, work)
    }

    /// Issues a write of this size in bytes.
    fn write_sized<T: Send + 'static>(
        &self,
        size: usize,
        work: impl FnMut(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> StoreFuture<'static, T> {
        match self.writer() {
            Some(writer) => writer.write_sized(size, work),
            None => Box::pin(async { Err(StoreError::Closed) }),
        }
    }

    fn writer(&self) -> Option<Arc<Writer>> {
        self.write_half().as_ref().map(|write_half| Arc::clone(&write_half.writer))
    }

    fn write_half(&self) -> MutexGuard<'_, Option<WriteHalf>> {
        self.write_half.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a read that sees all writes issued so far.
    fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> StoreFuture<'static, T> {
        let flushed = self.writer().and_then(|writer| writer.flush());
        let reading = self.readers.read(work);
        Box::pin(async {
            if let Some(flushed) = flushed {
                flushed.await?;
            }
            reading.await
        })
    }
}

impl Store for SqliteStore {
    fn insert(&self, new: NewExecution) -> StoreFuture<'static, InsertOutcome> {
        let size = new.request.len();
        self.write_sized(size, move |connection| executions::insert(connection, &new))
    }

    fn duplicate<'a>(
        &'a self,
        owner: Option<&'a str>,
        idempotency: &'a Idempotency,
    ) -> StoreFuture<'a, Option<InsertOutcome>> {
        let (owner, idempotency) = (owner.map(ToOwned::to_owned), idempotency.clone());
        self.read(move |connection| {
            executions::find_duplicate(connection, owner.as_deref(), &idempotency)
        })
    }

    fn execution<'a>(&'a self, id: &'a str) -> StoreFuture<'a, Option<ExecutionRecord>> {
        let id = id.to_owned();
        self.read(move |connection| executions::get(connection, &id))
    }

    fn summary<'a>(&'a self, id: &'a str) -> StoreFuture<'a, Option<ExecutionSummary>> {
        let id = id.to_owned();
        self.read(move |connection| executions::summary(connection, &id))
    }

    fn list(&self, filter: ExecutionFilter) -> StoreFuture<'_, Page> {
        self.read(move |connection| listing::list(connection, &filter))
    }

    fn mark_running<'a>(&'a self, id: &'a str, at: DateTime<Utc>) -> StoreFuture<'a, ()> {
        let id = id.to_owned();
        self.write(move |connection| executions::mark_running(connection, &id, at))
    }

    fn requeue<'a>(&'a self, id: &'a str) -> StoreFuture<'a, ()> {
        let id = id.to_owned();
        self.write(move |connection| executions::requeue(connection, &id))
    }

    fn finish(&self, finished: FinishedExecution) -> StoreFuture<'static, bool> {
        let size = finished.size();
        self.write_sized(size, move |connection| executions::finish(connection, &finished))
    }

    fn insert_finished(
        &self,
        new: Arc<NewExecution>,
        finished: FinishedExecution,
    ) -> StoreFuture<'static, bool> {
        let size = new.request.len() + finished.size();
        self.write_sized(size, move |connection| {
            executions::insert(connection, &new)?;
            executions::finish(connection, &finished)
        })
    }

    fn events<'a>(
        &'a self,
        id: &'a str,
        after: u64,
        limit: u32,
    ) -> StoreFuture<'a, Vec<StoredEvent>> {
        let id = id.to_owned();
        self.read(move |connection| events::read(connection, &id, after, limit))
    }

    fn unfinished(&self) -> StoreFuture<'_, Vec<ExecutionRecord>> {
        self.read(executions::unfinished)
    }

    fn due_callbacks(
        &self,
        now: DateTime<Utc>,
        excluded: CallbackExclusions,
        limit: u32,
    ) -> StoreFuture<'_, Vec<DueCallback>> {
        self.read(move |connection| callbacks::due(connection, now, excluded, limit))
    }

    fn record_callback<'a>(&'a self, id: &'a str, update: CallbackUpdate) -> StoreFuture<'a, ()> {
        let id = id.to_owned();
        self.write(move |connection| callbacks::update(connection, &id, update))
    }

    fn add_key(&self, key: KeyRecord) -> StoreFuture<'_, ()> {
        self.write(move |connection| keys::add(connection, &key))
    }

    fn keys(&self) -> StoreFuture<'_, Vec<KeyRecord>> {
        self.read(keys::all)
    }

    fn revoke_key<'a>(&'a self, id: &'a str, at: DateTime<Utc>) -> StoreFuture<'a, bool> {
        let id = id.to_owned();
        self.write(move |connection| keys::revoke(connection, &id, at))
    }

    fn set_key_permissions<'a>(
        &'a self,
        id: &'a str,
        permissions: Permissions,
    ) -> StoreFuture<'a, bool> {
        let id = id.to_owned();
        self.write(move |connection| keys::set_permissions(connection, &id, &permissions))
    }

    fn audit(&self, record: AuditRecord) -> StoreFuture<'_, ()> {
        self.write(move |connection| audit::write(connection, &record))
    }

    fn audit_log(&self, limit: u32) -> StoreFuture<'_, Vec<AuditRecord>> {
        self.read(move |connection| audit::newest(connection, limit))
    }

    fn sweep(&self, retention: Retention, now: DateTime<Utc>) -> StoreFuture<'_, Swept> {
        Box::pin(sweep::sweep(self, retention, now))
    }

    fn size(&self) -> StoreFuture<'_, u64> {
        self.read(health::size)
    }

    fn ping(&self) -> StoreFuture<'_, ()> {
        self.read(health::ping)
    }

    fn probe(&self) -> StoreFuture<'_, ()> {
        let path = self.path.clone();
        self.write(move |connection| health::probe(connection, &path))
    }

    fn is_failing(&self) -> bool {
        self.writer().is_none_or(|writer| writer.is_failing())
    }

    fn is_backlogged(&self) -> bool {
        self.writer().is_some_and(|writer| writer.is_backlogged())
    }

    fn is_degraded(&self) -> bool {
        self.is_failing() || self.is_backlogged() || health::is_nearly_full(&self.path)
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Self::close(self).boxed()
    }
}
