//! The connection that writes.
//!
//! SQLite allows one writer at a time. Writes go into a queue, and one thread commits all queued writes in one
//! transaction: the more writes are queued, the less each of them costs. They are applied in the order in which
//! they were issued.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use futures_util::FutureExt;
use rusqlite::{Connection, ErrorCode, TransactionBehavior};
use tokio::sync::oneshot;

use crate::{StoreError, StoreFuture};

/// The maximum number of writes in a transaction, which bounds the latency of the first one.
const MAX_BATCH: usize = 256;

/// With a larger backlog, in bytes, callers should wait before they issue more writes.
const MAX_BACKLOG: usize = 32 << 20;

/// Issues writes to the thread. When it is dropped, the thread completes the queued writes and ends.
#[derive(Debug)]
pub(super) struct Writer {
    shared: Arc<Shared>,
}

struct Shared {
    queue: Mutex<WriteQueue>,
    /// Notified when the thread has something to do.
    wakeup: Condvar,
    /// Whether the last write failed, for a reason other than its own content.
    is_failing: AtomicBool,
    /// The size of the writes that are not committed yet, in bytes.
    backlog: AtomicUsize,
}

#[derive(Default)]
struct WriteQueue {
    pending: Vec<Box<dyn Write>>,
    /// Whether a batch was taken out and is not committed yet.
    is_writing: bool,
    is_closed: bool,
}

/// A queued write.
trait Write: Send {
    /// Runs the write in a transaction. It may run a second time if the transaction is rolled back.
    fn run(&mut self, connection: &Connection) -> Result<(), StoreError>;

    /// The approximate size in bytes.
    fn size(&self) -> usize;

    /// Sends the outcome to the caller.
    fn complete(self: Box<Self>, outcome: Result<(), StoreError>);
}

struct PendingWrite<F, T> {
    work: F,
    output: Option<T>,
    sender: oneshot::Sender<Result<T, StoreError>>,
    size: usize,
}

impl<F, T> Write for PendingWrite<F, T>
where
    F: FnMut(&Connection) -> Result<T, StoreError> + Send,
    T: Send,
{
    fn run(&mut self, connection: &Connection) -> Result<(), StoreError> {
        self.output = Some((self.work)(connection)?);
        Ok(())
    }

    fn size(&self) -> usize {
        self.size
    }

    fn complete(self: Box<Self>, outcome: Result<(), StoreError>) {
        let Self { output, sender, .. } = *self;
        let result = outcome.and_then(|()| output.ok_or(StoreError::Closed));
        // The caller may have dropped the future; the write is committed all the same.
        let _ = sender.send(result);
    }
}

impl Writer {
    /// Starts the thread.
    pub(super) fn start(mut connection: Connection) -> std::io::Result<(Self, JoinHandle<()>)> {
        let shared = Arc::new(Shared {
            queue: Mutex::default(),
            wakeup: Condvar::new(),
            is_failing: AtomicBool::new(false),
            backlog: AtomicUsize::new(0),
        });
        let writing = Arc::clone(&shared);
        let thread = thread::Builder::new()
            .name("store writer".to_owned())
            .spawn(move || writing.write_until_closed(&mut connection))?;
        Ok((Self { shared }, thread))
    }

    /// Issues a write, whether or not its future is awaited. `work` may run twice, if its first transaction is
    /// rolled back.
    ///
    /// The write is queued at once. The thread is woken when the future is first polled or dropped, so that it
    /// does not compete for the CPU with a caller that does other work first.
    pub(super) fn write<T: Send + 'static>(
        &self,
        work: impl FnMut(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> StoreFuture<'static, T> {
        self.write_sized(0, work)
    }

    /// Like [`Self::write`], with the size of the write in bytes.
    pub(super) fn write_sized<T: Send + 'static>(
        &self,
        size: usize,
        work: impl FnMut(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> StoreFuture<'static, T> {
        let receiver = self.enqueue(size, work);
        let wake = WakeOnDrop(Arc::clone(&self.shared));
        async move {
            drop(wake);
            receiver.await.unwrap_or(Err(StoreError::Closed))
        }
        .boxed()
    }

    /// Waits until all writes issued so far are committed. Returns none if they are already.
    pub(super) fn flush(&self) -> Option<StoreFuture<'static, ()>> {
        let is_idle = {
            let queue = lock(&self.shared.queue);
            queue.pending.is_empty() && !queue.is_writing
        };
        (!is_idle).then(|| self.write(|_| Ok(())))
    }

    /// Whether the last write failed for a reason that may make the next one fail too.
    pub(super) fn is_failing(&self) -> bool {
        self.shared.is_failing.load(Ordering::SeqCst)
    }

    /// Whether the backlog exceeds [`MAX_BACKLOG`].
    pub(super) fn is_backlogged(&self) -> bool {
        self.shared.backlog.load(Ordering::SeqCst) > MAX_BACKLOG
    }

    fn enqueue<T: Send + 'static>(
        &self,
        size: usize,
        work: impl FnMut(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> oneshot::Receiver<Result<T, StoreError>> {
        let (sender, receiver) = oneshot::channel();
        self.shared.backlog.fetch_add(size, Ordering::SeqCst);
        let write = PendingWrite { work, output: None, sender, size };
        lock(&self.shared.queue).pending.push(Box::new(write));
        receiver
    }
}

struct WakeOnDrop(Arc<Shared>);

impl Drop for WakeOnDrop {
    fn drop(&mut self) {
        self.0.wakeup.notify_one();
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        lock(&self.shared.queue).is_closed = true;
        self.shared.wakeup.notify_one();
    }
}

impl Shared {
    fn write_until_closed(&self, connection: &mut Connection) {
        let mut queue = lock(&self.queue);
        loop {
            queue.is_writing = false;
            let is_idle = |queue: &mut WriteQueue| queue.pending.is_empty() && !queue.is_closed;
            queue = self.wakeup.wait_while(queue, is_idle).unwrap_or_else(PoisonError::into_inner);
            if queue.pending.is_empty() {
                return;
            }
            queue.is_writing = true;
            let count = queue.pending.len().min(MAX_BATCH);
            let batch = queue.pending.drain(..count).collect();
            drop(queue);
            self.write_batch(connection, batch);
            queue = lock(&self.queue);
        }
    }

    fn write_batch(&self, connection: &mut Connection, mut batch: Vec<Box<dyn Write>>) {
        if batch.len() > 1 && commit(connection, &mut batch).is_ok() {
            self.is_failing.store(false, Ordering::SeqCst);
            for write in batch {
                self.backlog.fetch_sub(write.size(), Ordering::SeqCst);
                write.complete(Ok(()));
            }
            return;
        }
        // A failed write has rolled back the others too: retry each in a transaction of its own.
        for mut write in batch {
            let outcome = commit(connection, std::slice::from_mut(&mut write));
            // Set before the caller has the outcome: it must not see a failed write and a healthy store.
            let is_failing = outcome.as_ref().is_err_and(is_store_failure);
            self.is_failing.store(is_failing, Ordering::SeqCst);
            self.backlog.fetch_sub(write.size(), Ordering::SeqCst);
            write.complete(outcome);
        }
    }
}

/// Whether the cause is the store, for instance a full disk, and not the content of the write.
fn is_store_failure(error: &StoreError) -> bool {
    match error {
        StoreError::Database(error) => {
            error.sqlite_error_code() != Some(ErrorCode::ConstraintViolation)
        }
        error => matches!(error, StoreError::Open { .. }),
    }
}

/// Ignores poisoning: a panic in a write rolls its transaction back and leaves nothing half done.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

/// Commits all writes in one transaction, or none.
fn commit(connection: &mut Connection, writes: &mut [Box<dyn Write>]) -> Result<(), StoreError> {
    // Takes the write lock at once: a transaction that began as a reader fails to upgrade if another process
    // wrote in between.
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for write in writes {
        write.run(&transaction)?;
    }
    Ok(transaction.commit()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(connection: &Connection) -> Vec<i64> {
        let mut query = connection.prepare("SELECT n FROM t ORDER BY n").unwrap();
        query.query_map((), |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    }

    fn insert(n: i64) -> impl FnMut(&Connection) -> Result<usize, StoreError> + Send + 'static {
        move |connection| Ok(connection.execute("INSERT INTO t VALUES (?)", [n])?)
    }

    #[tokio::test]
    async fn a_failed_write_does_not_affect_the_others_of_its_batch() {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch("CREATE TABLE t (n INTEGER PRIMARY KEY)").unwrap();
        let (writer, thread) = Writer::start(connection).unwrap();
        // Blocks the thread until all other writes are queued, so that they go into one transaction.
        let (unblock, blocked) = std::sync::mpsc::channel::<()>();
        let first = writer.write(move |_| Ok(blocked.recv().ok()));
        let pending: Vec<_> = [1, 2, 1, 3].map(|n| writer.write(insert(n))).into_iter().collect();
        let read = writer.write(|connection| Ok(numbers(connection)));
        drop(unblock);
        first.await.unwrap();
        let mut outcomes = Vec::new();
        for write in pending {
            outcomes.push(write.await.is_ok());
        }
        assert_eq!(outcomes, [true, true, false, true]);
        assert_eq!(read.await.unwrap(), [1, 2, 3]);
        drop(writer);
        thread.join().unwrap();
    }

    #[tokio::test]
    async fn a_write_whose_future_is_dropped_is_committed() {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch("CREATE TABLE t (n INTEGER PRIMARY KEY)").unwrap();
        let (writer, thread) = Writer::start(connection).unwrap();
        drop(writer.write(insert(7)));
        let read = writer.write(|connection| Ok(numbers(connection)));
        drop(writer);
        thread.join().unwrap();
        assert_eq!(read.await.unwrap(), [7]);
    }
}
