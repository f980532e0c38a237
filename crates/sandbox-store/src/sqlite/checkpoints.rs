//! Works the log into the file, away from the writer: flushing to the disk takes long, and whoever
//! waits for a write should not wait for that.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rusqlite::{Connection, Row};

use super::open;

const BETWEEN: Duration = Duration::from_secs(1);

/// After so many looks at which nothing was written, the log is cut to nothing.
const QUIET_LOOKS: u32 = 5;

/// A thread that does it now and then, until this is dropped.
#[derive(Debug)]
pub(super) struct Checkpoints {
    alive: Sender<()>,
    thread: JoinHandle<()>,
}

impl Checkpoints {
    pub(super) fn start(path: PathBuf) -> std::io::Result<Self> {
        let (alive, ended) = channel();
        let thread = thread::Builder::new()
            .name("store checkpoints".to_owned())
            .spawn(move || now_and_then(&path, &ended))?;
        Ok(Self { alive, thread })
    }

    /// Ends it, and waits until it has closed the file.
    pub(super) fn end(self) {
        drop(self.alive);
        // It only ends badly by a panic, which was printed when it happened.
        let _ = self.thread.join();
    }
}

fn now_and_then(path: &Path, ended: &Receiver<()>) {
    let Ok(connection) = open::checkpointer(path) else {
        // The writer does it then, when the log has become long.
        return;
    };
    // Cutting the log needs a moment without readers and writers: it is had or not, and not waited for.
    let _ = connection.busy_timeout(Duration::ZERO);
    let (mut done, mut quiet) = (None, 0);
    while ended.recv_timeout(BETWEEN) == Err(RecvTimeoutError::Timeout) {
        let version = data_version(&connection);
        if version != done {
            checkpoint(&connection);
            (done, quiet) = (version, 0);
        } else if quiet < QUIET_LOOKS {
            quiet += 1;
            if quiet == QUIET_LOOKS && !truncate(&connection) {
                // Again at the next look.
                quiet -= 1;
            }
        }
    }
}

/// Another number whenever another connection has written.
fn data_version(connection: &Connection) -> Option<i64> {
    connection.pragma_query_value(None, "data_version", |row| row.get(0)).ok()
}

/// Waits for nobody: what cannot be done now is done the next time.
fn checkpoint(connection: &Connection) {
    let _ = connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", (), |_| Ok(()));
}

/// Works all of the log into the file and cuts it to nothing; false if somebody uses it now.
fn truncate(connection: &Connection) -> bool {
    let is_busy = |row: &Row<'_>| row.get::<_, i64>(0);
    matches!(connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), is_busy), Ok(0))
}
