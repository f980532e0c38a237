use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::FutureExt;
use rusqlite::Connection;
use tokio::sync::Semaphore;

use super::open;
use crate::{StoreError, StoreFuture};

/// Reads are limited by the CPU, not by the disk: more connections would not make them faster.
const MAX_CONNECTIONS: usize = 4;

/// Read-only connections. Thanks to the write-ahead log they neither wait for the writer nor block it.
#[derive(Clone, Debug)]
pub(super) struct ReaderPool {
    path: PathBuf,
    permits: Arc<Semaphore>,
    /// Opened on demand.
    idle: Arc<Mutex<Vec<Connection>>>,
}

impl ReaderPool {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, permits: Arc::new(Semaphore::new(MAX_CONNECTIONS)), idle: Arc::default() }
    }

    /// Runs a read on a blocking thread.
    pub(super) fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> StoreFuture<'static, T> {
        let pool = self.clone();
        let reading = async move {
            let permit = Arc::clone(&pool.permits).acquire_owned().await;
            let reading = tokio::task::spawn_blocking(move || {
                let _permit = permit;
                let connection = match pool.acquire() {
                    Some(connection) => connection,
                    None => open::reader(&pool.path)?,
                };
                let result = work(&connection);
                pool.release(connection);
                result
            });
            reading.await.unwrap_or(Err(StoreError::Closed))
        };
        reading.boxed()
    }

    /// Closes the idle connections.
    pub(super) fn close(&self) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    fn acquire(&self) -> Option<Connection> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    fn release(&self, connection: Connection) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
    }
}
