//! Checkpoints the write-ahead log on a thread of its own, because flushing to disk is slow and would delay
//! writes.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rusqlite::{Connection, Row};

use super::open;

const CHECKPOINT_INTERVAL: Duration = Duration::from_secs(1);

/// After this number of intervals without a write the log is truncated.
const IDLE_INTERVALS: u32 = 5;

/// The checkpoint thread. It ends when this is dropped.
#[derive(Debug)]
pub(super) struct Checkpointer {
    alive: Sender<()>,
    thread: JoinHandle<()>,
}

impl Checkpointer {
    pub(super) fn start(path: PathBuf) -> std::io::Result<Self> {
        let (alive, closed) = channel();
        let thread = thread::Builder::new()
            .name("store checkpoints".to_owned())
            .spawn(move || checkpoint_until_closed(&path, &closed))?;
        Ok(Self { alive, thread })
    }

    /// Stops the thread and waits until it has closed the database.
    pub(super) fn stop(self) {
        drop(self.alive);
        // An error means a panic, which was printed when it happened.
        let _ = self.thread.join();
    }
}

fn checkpoint_until_closed(path: &Path, closed: &Receiver<()>) {
    let Ok(connection) = open::checkpointer(path) else {
        // The writer checkpoints then, when the log has become long.
        return;
    };
    // Truncation needs a moment without readers and writers: try again later instead of waiting for it.
    let _ = connection.busy_timeout(Duration::ZERO);
    let (mut checkpointed, mut idle) = (None, 0);
    while closed.recv_timeout(CHECKPOINT_INTERVAL) == Err(RecvTimeoutError::Timeout) {
        let version = data_version(&connection);
        if version != checkpointed {
            checkpoint(&connection);
            (checkpointed, idle) = (version, 0);
        } else if idle < IDLE_INTERVALS {
            idle += 1;
            if idle == IDLE_INTERVALS && !truncate(&connection) {
                // Try again after the next interval.
                idle -= 1;
            }
        }
    }
}

/// Returns a number that changes whenever another connection writes.
fn data_version(connection: &Connection) -> Option<i64> {
    connection.pragma_query_value(None, "data_version", |row| row.get(0)).ok()
}

/// Copies what it can of the log to the database file, without waiting for readers.
fn checkpoint(connection: &Connection) {
    let _ = connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", (), |_| Ok(()));
}

/// Copies all of the log to the database file and truncates it. Returns false if another connection uses it.
fn truncate(connection: &Connection) -> bool {
    let is_busy = |row: &Row<'_>| row.get::<_, i64>(0);
    matches!(connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), is_busy), Ok(0))
}
