use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::FutureExt;
use rusqlite::Connection;
use tokio::sync::Semaphore;

use super::open;
use crate::{Answer, StoreError};

/// Reading is quick: more connections than this would wait for the processor, not for the disk.
const MOST: usize = 4;

/// Connections that cannot write. By the write-ahead log they neither wait for the writer nor hold it up.
#[derive(Clone, Debug)]
pub(super) struct Readers {
    path: PathBuf,
    free: Arc<Semaphore>,
    /// Made when they are first needed.
    idle: Arc<Mutex<Vec<Connection>>>,
}

impl Readers {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, free: Arc::new(Semaphore::new(MOST)), idle: Arc::default() }
    }

    /// Reads on a thread where it holds nobody up.
    pub(super) fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Answer<'static, T> {
        let readers = self.clone();
        let reading = async move {
            let turn = Arc::clone(&readers.free).acquire_owned().await;
            let reading = tokio::task::spawn_blocking(move || {
                let _turn = turn;
                let connection = match readers.take() {
                    Some(connection) => connection,
                    None => open::reader(&readers.path)?,
                };
                let read = work(&connection);
                readers.give_back(connection);
                read
            });
            reading.await.unwrap_or(Err(StoreError::Closed))
        };
        reading.boxed()
    }

    /// Closes those that are idle.
    pub(super) fn close(&self) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    fn take(&self) -> Option<Connection> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    fn give_back(&self, connection: Connection) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
    }
}
