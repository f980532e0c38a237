//! The one connection that writes.
//!
//! SQLite has one writer at a time whatever one does. Orders are put into a line, and a thread writes all
//! that stand there in one transaction: the more there is to do, the less each write costs. They are
//! carried out in the order in which they were given.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use futures_util::FutureExt;
use rusqlite::{Connection, ErrorCode, TransactionBehavior};
use tokio::sync::oneshot;

use crate::{Answer, StoreError};

/// No transaction is longer, so that the first one in it does not wait for ever more.
const TOGETHER: usize = 256;

/// With more bytes than this in the line, whoever makes more should wait.
const MAX_BACKLOG: usize = 32 << 20;

/// The way to the connection. When it is dropped, the thread does what is left and ends.
#[derive(Debug)]
pub(super) struct Writer {
    shared: Arc<Shared>,
}

struct Shared {
    line: Mutex<Line>,
    /// Told when the thread has something to do.
    called: Condvar,
    /// Whether the last write failed, and not because of what was to be written.
    is_failing: AtomicBool,
    /// Bytes that wait to be written.
    backlog: AtomicUsize,
}

/// What is to be written.
#[derive(Default)]
struct Line {
    orders: Vec<Box<dyn Order>>,
    /// Whether some were taken out and are not yet written.
    is_writing: bool,
    is_closed: bool,
}

/// A write that somebody waits for.
trait Order: Send {
    /// Does it, within a transaction that may still fail: it may have to be done again.
    fn carry_out(&mut self, connection: &Connection) -> Result<(), StoreError>;

    /// How many bytes it writes, about.
    fn size(&self) -> usize;

    /// Tells what came of it.
    fn answer(self: Box<Self>, outcome: Result<(), StoreError>);
}

struct Write<F, T> {
    work: F,
    made: Option<T>,
    answer: oneshot::Sender<Result<T, StoreError>>,
    size: usize,
}

impl<F, T> Order for Write<F, T>
where
    F: FnMut(&Connection) -> Result<T, StoreError> + Send,
    T: Send,
{
    fn carry_out(&mut self, connection: &Connection) -> Result<(), StoreError> {
        self.made = Some((self.work)(connection)?);
        Ok(())
    }

    fn size(&self) -> usize {
        self.size
    }

    fn answer(self: Box<Self>, outcome: Result<(), StoreError>) {
        let Self { made, answer, .. } = *self;
        let made = outcome.and_then(|()| made.ok_or(StoreError::Closed));
        // Whoever asked may have gone away; it is written all the same.
        let _ = answer.send(made);
    }
}

impl Writer {
    /// Starts the thread.
    pub(super) fn start(mut connection: Connection) -> std::io::Result<(Self, JoinHandle<()>)> {
        let shared = Arc::new(Shared {
            line: Mutex::default(),
            called: Condvar::new(),
            is_failing: AtomicBool::new(false),
            backlog: AtomicUsize::new(0),
        });
        let writing = Arc::clone(&shared);
        let thread = thread::Builder::new()
            .name("store writer".to_owned())
            .spawn(move || writing.write_until_closed(&mut connection))?;
        Ok((Self { shared }, thread))
    }

    /// Has this done, whether or not the answer is waited for. It may be done a second time if the
    /// first time was undone.
    ///
    /// It stands in the line at once. The thread is called when the answer is waited for or let go of:
    /// whoever keeps it for a moment has the processor to himself until then.
    pub(super) fn write<T: Send + 'static>(
        &self,
        work: impl FnMut(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Answer<'static, T> {
        self.write_sized(0, work)
    }

    /// The same of something so long.
    pub(super) fn write_sized<T: Send + 'static>(
        &self,
        size: usize,
        work: impl FnMut(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Answer<'static, T> {
        let answered = self.give(size, work);
        let call = Call(Arc::clone(&self.shared));
        async move {
            drop(call);
            answered.await.unwrap_or(Err(StoreError::Closed))
        }
        .boxed()
    }

    /// Waits until everything is written that was given so far; nothing to wait for if it is already.
    pub(super) fn settle(&self) -> Option<Answer<'static, ()>> {
        let is_settled = {
            let line = lock(&self.shared.line);
            line.orders.is_empty() && !line.is_writing
        };
        (!is_settled).then(|| self.write(|_| Ok(())))
    }

    /// Whether the last write failed for a reason that may make the next one fail too.
    pub(super) fn is_failing(&self) -> bool {
        self.shared.is_failing.load(Ordering::SeqCst)
    }

    /// Whether more waits to be written than should.
    pub(super) fn is_backlogged(&self) -> bool {
        self.shared.backlog.load(Ordering::SeqCst) > MAX_BACKLOG
    }

    fn give<T: Send + 'static>(
        &self,
        size: usize,
        work: impl FnMut(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> oneshot::Receiver<Result<T, StoreError>> {
        let (answer, answered) = oneshot::channel();
        self.shared.backlog.fetch_add(size, Ordering::SeqCst);
        lock(&self.shared.line).orders.push(Box::new(Write { work, made: None, answer, size }));
        answered
    }
}

/// Calls the thread when it is dropped.
struct Call(Arc<Shared>);

impl Drop for Call {
    fn drop(&mut self) {
        self.0.called.notify_one();
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        lock(&self.shared.line).is_closed = true;
        self.shared.called.notify_one();
    }
}

impl Shared {
    fn write_until_closed(&self, connection: &mut Connection) {
        let mut line = lock(&self.line);
        loop {
            line.is_writing = false;
            let is_idle = |line: &mut Line| line.orders.is_empty() && !line.is_closed;
            line = self.called.wait_while(line, is_idle).unwrap_or_else(PoisonError::into_inner);
            if line.orders.is_empty() {
                return;
            }
            line.is_writing = true;
            let together = line.orders.len().min(TOGETHER);
            let orders = line.orders.drain(..together).collect();
            drop(line);
            self.write_some(connection, orders);
            line = lock(&self.line);
        }
    }

    fn write_some(&self, connection: &mut Connection, mut orders: Vec<Box<dyn Order>>) {
        if orders.len() > 1 && together(connection, &mut orders).is_ok() {
            self.is_failing.store(false, Ordering::SeqCst);
            for order in orders {
                self.backlog.fetch_sub(order.size(), Ordering::SeqCst);
                order.answer(Ok(()));
            }
            return;
        }
        // One of them failed and took the others with it. On its own each fails or not for itself.
        for mut order in orders {
            let outcome = together(connection, std::slice::from_mut(&mut order));
            // Before the answer: whoever has it must not find the store in order.
            let is_failing = outcome.as_ref().is_err_and(is_of_the_store);
            self.is_failing.store(is_failing, Ordering::SeqCst);
            self.backlog.fetch_sub(order.size(), Ordering::SeqCst);
            order.answer(outcome);
        }
    }
}

/// Whether it lies with the store, such as a full disk, and not with what was to be written.
fn is_of_the_store(error: &StoreError) -> bool {
    match error {
        StoreError::Database(error) => {
            error.sqlite_error_code() != Some(ErrorCode::ConstraintViolation)
        }
        error => matches!(error, StoreError::Open { .. }),
    }
}

/// A panic in somebody's order rolls its transaction back and leaves nothing half done.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

/// All of them in one transaction, or none.
fn together(connection: &mut Connection, orders: &mut [Box<dyn Order>]) -> Result<(), StoreError> {
    // It takes the lock at once: one that read first could not take it later if another process wrote
    // meanwhile.
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for order in orders {
        order.carry_out(&transaction)?;
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
    async fn one_that_fails_does_not_harm_the_others() {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch("CREATE TABLE t (n INTEGER PRIMARY KEY)").unwrap();
        let (writer, thread) = Writer::start(connection).unwrap();
        // Holds the thread until all the others wait, so that they go into one transaction.
        let (go, wait) = std::sync::mpsc::channel::<()>();
        let held = writer.write(move |_| Ok(wait.recv().ok()));
        let answers: Vec<_> = [1, 2, 1, 3].map(|n| writer.write(insert(n))).into_iter().collect();
        let read = writer.write(|connection| Ok(numbers(connection)));
        drop(go);
        held.await.unwrap();
        let mut outcomes = Vec::new();
        for answer in answers {
            outcomes.push(answer.await.is_ok());
        }
        assert_eq!(outcomes, [true, true, false, true]);
        assert_eq!(read.await.unwrap(), [1, 2, 3]);
        drop(writer);
        thread.join().unwrap();
    }

    #[tokio::test]
    async fn what_nobody_waits_for_is_written_too() {
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
