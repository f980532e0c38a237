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
            let permit = permit.map_err(|_| StoreError::Closed)?;
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

    /// Waits for the reads in progress, whose callers may be gone, and closes all connections. Later reads fail.
    pub(super) async fn close(&self) {
        let all = u32::try_from(MAX_CONNECTIONS).unwrap_or(u32::MAX);
        // An error means that the pool is closed already.
        let _all = self.permits.acquire_many(all).await;
        self.permits.close();
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    fn acquire(&self) -> Option<Connection> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    fn release(&self, connection: Connection) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::mpsc;

    use tempfile::TempDir;
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn closing_waits_for_a_read_whose_caller_is_gone() {
        let directory = TempDir::new().unwrap();
        let path = directory.path().join("test.db");
        Connection::open(&path).unwrap().execute_batch("CREATE TABLE t (x)").unwrap();
        let pool = ReaderPool::new(path);
        let (begun, has_begun) = oneshot::channel();
        let (end, ends) = mpsc::channel();
        let reading = tokio::spawn(pool.read(move |_| {
            begun.send(()).unwrap();
            ends.recv().unwrap();
            Ok(())
        }));
        has_begun.await.unwrap();
        reading.abort();
        let mut closing = pin!(pool.close());
        assert!(closing.as_mut().now_or_never().is_none(), "closed during a read");
        end.send(()).unwrap();
        closing.await;
        assert!(pool.acquire().is_none(), "a connection is left open");
        assert!(matches!(pool.read(|_| Ok(())).await, Err(StoreError::Closed)));
    }
}
