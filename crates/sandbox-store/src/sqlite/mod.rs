//! The embedded store: one SQLite file.
//!
//! One thread writes ([`writer`]); readers have connections of their own ([`readers`]) and, by the
//! write-ahead log, neither wait for it nor hold it up.
//!
//! A commit is in the log before it is answered: it survives the death of this process at any
//! moment. With `synchronous = NORMAL` the log is flushed to the disk at checkpoints only, so that a
//! power failure may take the last moments with it, but never damages the file.

mod audit;
mod callbacks;
mod checkpoints;
mod events;
mod executions;
mod keys;
mod listing;
mod migrations;
mod open;
mod probe;
mod query;
mod readers;
mod size;
mod sweep;
mod value;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use chrono::{DateTime, Utc};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use rusqlite::Connection;

use self::checkpoints::Checkpoints;
use self::readers::Readers;
use self::writer::Writer;
use crate::{
    Answer, AuditRecord, Busy, CallbackEnd, DueCallback, Ending, ExecutionFilter, ExecutionRecord,
    Glance, Inserted, KeyRecord, NewExecution, NewKey, Page, Permissions, Retention, Store,
    StoreError, StoredEvent, Swept,
};

/// A store in one SQLite file. Several processes may have it open at once.
#[derive(Debug)]
pub struct SqliteStore {
    /// `None` once it was closed.
    open: Mutex<Option<Open>>,
    readers: Readers,
    path: PathBuf,
}

/// What writes.
#[derive(Debug)]
struct Open {
    writer: Arc<Writer>,
    thread: JoinHandle<()>,
    checkpoints: Checkpoints,
}

impl SqliteStore {
    /// Opens the database in this file, making it, and directories on the way to it, if they are not
    /// there. Only the user we run as can read what we make.
    pub async fn open(path: &Path) -> Result<Self, StoreError> {
        open::open(path).await
    }

    fn new(open: Open, path: PathBuf) -> Self {
        Self { open: Mutex::new(Some(open)), readers: Readers::new(path.clone()), path }
    }

    /// Does what is under way and closes the file. Nothing is lost without it; the log is worked into
    /// the file, and the next start has less to do.
    pub async fn close(&self) {
        self.readers.close();
        let open = self.open.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
        let Some(Open { writer, thread, checkpoints }) = open else {
            return;
        };
        // The writer last: whoever closes the file last works the log into it.
        let closing = tokio::task::spawn_blocking(move || {
            checkpoints.end();
            drop(writer);
            thread.join()
        });
        // It only ends badly by a panic, which was printed when it happened.
        let _ = closing.await;
    }

    /// Has this written, in the order of the calls.
    fn write<T: Send + 'static>(
        &self,
        work: impl FnMut(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Answer<'static, T> {
        self.write_sized(0, work)
    }

    /// The same of something so long.
    fn write_sized<T: Send + 'static>(
        &self,
        size: usize,
        work: impl FnMut(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Answer<'static, T> {
        match self.writer() {
            Some(writer) => writer.write_sized(size, work),
            None => Box::pin(async { Err(StoreError::Closed) }),
        }
    }

    fn writer(&self) -> Option<Arc<Writer>> {
        let open = self.open.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        open.as_ref().map(|open| Arc::clone(&open.writer))
    }

    fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Answer<'static, T> {
        let settled = self.writer().and_then(|writer| writer.settle());
        let reading = self.readers.read(work);
        Box::pin(async {
            if let Some(settled) = settled {
                settled.await?;
            }
            reading.await
        })
    }
}

impl Store for SqliteStore {
    fn insert(&self, new: NewExecution) -> Answer<'static, Inserted> {
        let size = new.request.len();
        self.write_sized(size, move |connection| executions::insert(connection, &new))
    }

    fn execution<'a>(&'a self, id: &'a str) -> Answer<'a, Option<ExecutionRecord>> {
        let id = id.to_owned();
        self.read(move |connection| executions::get(connection, &id))
    }

    fn glance<'a>(&'a self, id: &'a str) -> Answer<'a, Option<Glance>> {
        let id = id.to_owned();
        self.read(move |connection| executions::glance(connection, &id))
    }

    fn list(&self, filter: ExecutionFilter) -> Answer<'_, Page> {
        self.read(move |connection| listing::list(connection, &filter))
    }

    fn begin<'a>(&'a self, id: &'a str, at: DateTime<Utc>) -> Answer<'a, ()> {
        let id = id.to_owned();
        self.write(move |connection| executions::begin(connection, &id, at))
    }

    fn put_back<'a>(&'a self, id: &'a str) -> Answer<'a, ()> {
        let id = id.to_owned();
        self.write(move |connection| executions::put_back(connection, &id))
    }

    fn finish(&self, ending: Ending) -> Answer<'static, bool> {
        let size = ending.size();
        self.write_sized(size, move |connection| executions::finish(connection, &ending))
    }

    fn insert_finished(&self, new: Arc<NewExecution>, ending: Ending) -> Answer<'static, bool> {
        let size = new.request.len() + ending.size();
        self.write_sized(size, move |connection| {
            executions::insert(connection, &new)?;
            executions::finish(connection, &ending)
        })
    }

    fn events<'a>(&'a self, id: &'a str, after: u64, most: u32) -> Answer<'a, Vec<StoredEvent>> {
        let id = id.to_owned();
        self.read(move |connection| events::read(connection, &id, after, most))
    }

    fn unfinished(&self) -> Answer<'_, Vec<ExecutionRecord>> {
        self.read(executions::unfinished)
    }

    fn due_callbacks(
        &self,
        now: DateTime<Utc>,
        busy: Busy,
        most: u32,
    ) -> Answer<'_, Vec<DueCallback>> {
        self.read(move |connection| callbacks::due(connection, now, busy, most))
    }

    fn callback_tried<'a>(&'a self, id: &'a str, end: CallbackEnd) -> Answer<'a, ()> {
        let id = id.to_owned();
        self.write(move |connection| callbacks::tried(connection, &id, end))
    }

    fn add_key(&self, key: NewKey) -> Answer<'_, ()> {
        self.write(move |connection| keys::add(connection, &key))
    }

    fn keys(&self) -> Answer<'_, Vec<KeyRecord>> {
        self.read(keys::all)
    }

    fn revoke_key<'a>(&'a self, id: &'a str, at: DateTime<Utc>) -> Answer<'a, bool> {
        let id = id.to_owned();
        self.write(move |connection| keys::revoke(connection, &id, at))
    }

    fn set_key_permissions<'a>(
        &'a self,
        id: &'a str,
        permissions: Permissions,
    ) -> Answer<'a, bool> {
        let id = id.to_owned();
        self.write(move |connection| keys::set_permissions(connection, &id, &permissions))
    }

    fn audit(&self, record: AuditRecord) -> Answer<'_, ()> {
        self.write(move |connection| audit::write(connection, &record))
    }

    fn audit_log(&self, most: u32) -> Answer<'_, Vec<AuditRecord>> {
        self.read(move |connection| audit::newest(connection, most))
    }

    fn sweep(&self, retention: Retention, now: DateTime<Utc>) -> Answer<'_, Swept> {
        Box::pin(sweep::sweep(self, retention, now))
    }

    fn size(&self) -> Answer<'_, u64> {
        self.read(size::of)
    }

    fn ping(&self) -> Answer<'_, ()> {
        // A query on a table, not a constant: it reads the file.
        self.read(|connection| {
            connection.prepare_cached("SELECT 1 FROM executions LIMIT 1")?.exists(())?;
            Ok(())
        })
    }

    fn probe(&self) -> Answer<'_, ()> {
        let path = self.path.clone();
        self.write(move |connection| probe::write(connection, &path))
    }

    fn is_failing(&self) -> bool {
        self.writer().is_none_or(|writer| writer.is_failing())
    }

    fn is_backlogged(&self) -> bool {
        self.writer().is_some_and(|writer| writer.is_backlogged())
    }

    fn is_in_doubt(&self) -> bool {
        self.is_failing() || self.is_backlogged() || probe::is_nearly_full(&self.path)
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Self::close(self).boxed()
    }
}
