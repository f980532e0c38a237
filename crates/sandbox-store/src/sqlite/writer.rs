//! The one thread that writes.
//!
//! SQLite has one writer at a time whatever one does. Here it is a thread with a connection of its own,
//! which takes everything that waits and writes it in one transaction: the more there is to do, the
//! less each write costs. Orders are carried out in the order in which they were given.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

use futures_util::FutureExt;
use rusqlite::{Connection, TransactionBehavior};
use tokio::sync::oneshot;

use crate::{Answer, StoreError};

/// No transaction is longer, so that the first one in it does not wait for ever more.
const TOGETHER: usize = 256;

/// The way to the thread. When the last one is dropped, the thread does what is left and ends.
#[derive(Debug)]
pub(super) struct Writer {
    orders: Sender<Box<dyn Order>>,
}

/// A write that somebody waits for.
trait Order: Send {
    /// Does it, within a transaction that may still fail: it may have to be done again.
    fn carry_out(&mut self, connection: &Connection) -> Result<(), StoreError>;

    /// Tells what came of it.
    fn answer(self: Box<Self>, outcome: Result<(), StoreError>);
}

struct Write<F, T> {
    work: F,
    made: Option<T>,
    answer: oneshot::Sender<Result<T, StoreError>>,
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

    fn answer(self: Box<Self>, outcome: Result<(), StoreError>) {
        let Self { made, answer, .. } = *self;
        let made = outcome.and_then(|()| made.ok_or(StoreError::Closed));
        // Whoever asked may have gone away; it is written all the same.
        let _ = answer.send(made);
    }
}

impl Writer {
    /// Starts the thread.
    pub(super) fn start(connection: Connection) -> std::io::Result<(Self, JoinHandle<()>)> {
        let (orders, waiting) = channel();
        let thread = thread::Builder::new()
            .name("store writer".to_owned())
            .spawn(move || write_all(connection, &waiting))?;
        Ok((Self { orders }, thread))
    }

    /// Has this done, whether or not the answer is waited for. It may be done a second time if the
    /// first time was undone.
    pub(super) fn write<T: Send + 'static>(
        &self,
        work: impl FnMut(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Answer<'static, T> {
        let (answer, answered) = oneshot::channel();
        // If the thread is gone, so is the sender of the answer, which is noticed below.
        let _ = self.orders.send(Box::new(Write { work, made: None, answer }));
        answered.map(|answer| answer.unwrap_or(Err(StoreError::Closed))).boxed()
    }
}

fn write_all(mut connection: Connection, waiting: &Receiver<Box<dyn Order>>) {
    while let Ok(first) = waiting.recv() {
        let mut orders = vec![first];
        orders.extend(waiting.try_iter().take(TOGETHER - 1));
        if orders.len() > 1 && together(&mut connection, &mut orders).is_ok() {
            for order in orders {
                order.answer(Ok(()));
            }
            continue;
        }
        // One of them failed and took the others with it. On its own each fails or not for itself.
        for mut order in orders {
            let outcome = together(&mut connection, std::slice::from_mut(&mut order));
            order.answer(outcome);
        }
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
        let (go, wait) = channel::<()>();
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
