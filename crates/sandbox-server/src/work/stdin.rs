//! Standard input that a client sends while the program runs.
//!
//! The library reads it on a thread of its own, from a channel of a few chunks: a program that does not read slows the
//! client down, and the server keeps little of it in memory. The input is open from the acceptance of the execution to its
//! end, for one sender.

use std::collections::HashMap;
use std::io::{self, Read};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::body::Bytes;
use tokio::sync::{mpsc, watch};

/// Maximum number of chunks that wait for the program. The HTTP library's chunks are at most 64 KiB.
const MAX_CHUNKS: usize = 4;

/// The open inputs, by execution.
#[derive(Clone, Default)]
pub(super) struct StdinStreams(Arc<Mutex<HashMap<String, Open>>>);

/// An input, until its execution has ended.
struct Open {
    owner: Option<String>,
    /// Whether the execution was accepted. If it is refused, the library's side is dropped, and the input with it.
    is_accepted: bool,
    /// `None` once a client has taken it.
    chunks: Option<mpsc::Sender<Bytes>>,
    /// Dropped at the end.
    end: watch::Sender<()>,
}

/// The client's side of an input. Dropping it ends the input.
pub(crate) struct StdinSender {
    chunks: mpsc::Sender<Bytes>,
    end: watch::Receiver<()>,
}

/// The library's side of an input.
pub(super) struct StdinReader {
    chunks: mpsc::Receiver<Bytes>,
    /// The rest of the last chunk.
    rest: Bytes,
    id: String,
    streams: StdinStreams,
}

/// No program reads the input any more.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Closed;

impl StdinStreams {
    /// Opens the input of an execution.
    pub(super) fn open(&self, id: &str, owner: Option<&str>) -> StdinReader {
        let (sender, chunks) = mpsc::channel(MAX_CHUNKS);
        let open = Open {
            owner: owner.map(ToOwned::to_owned),
            is_accepted: false,
            chunks: Some(sender),
            end: watch::Sender::new(()),
        };
        self.lock().insert(id.to_owned(), open);
        StdinReader { chunks, rest: Bytes::new(), id: id.to_owned(), streams: self.clone() }
    }

    /// Keeps the input of an accepted execution until [`Self::close`].
    pub(super) fn accept(&self, id: &str) {
        if let Some(open) = self.lock().get_mut(id) {
            open.is_accepted = true;
        }
    }

    /// The client's side, for the owner and once.
    pub(super) fn take(&self, id: &str, owner: Option<&str>) -> Option<StdinSender> {
        let mut open = self.lock();
        let open = open.get_mut(id).filter(|open| open.owner.as_deref() == owner)?;
        Some(StdinSender { chunks: open.chunks.take()?, end: open.end.subscribe() })
    }

    /// Closes the input of an execution that has ended: the library waits for the next chunk until then.
    pub(super) fn close(&self, id: &str) {
        self.lock().remove(id);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Open>> {
        // No panic leaves the map half changed.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StdinSender {
    /// Sends a chunk, once there is room for it.
    pub(crate) async fn send(&mut self, chunk: Bytes) -> Result<(), Closed> {
        tokio::select! {
            sent = self.chunks.send(chunk) => sent.map_err(|_| Closed),
            () = Self::until_end(&mut self.end) => Err(Closed),
        }
    }

    /// Waits until no program reads the input any more. Cancel safe.
    pub(crate) async fn closed(&mut self) {
        Self::until_end(&mut self.end).await;
    }

    async fn until_end(end: &mut watch::Receiver<()>) {
        // Nothing is sent: it fails when the sender is dropped.
        while end.changed().await.is_ok() {}
    }
}

impl Read for StdinReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.rest.is_empty() {
            match self.chunks.blocking_recv() {
                Some(chunk) => self.rest = chunk,
                None => return Ok(0),
            }
        }
        let count = self.rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&self.rest.split_to(count));
        Ok(count)
    }
}

impl Drop for StdinReader {
    fn drop(&mut self) {
        let mut open = self.streams.lock();
        if open.get(&self.id).is_some_and(|open| !open.is_accepted) {
            open.remove(&self.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn chunks_are_read_in_order_until_the_sender_is_dropped() {
        let streams = StdinStreams::default();
        let mut reader = streams.open("e", None);
        let mut sender = streams.take("e", None).unwrap();
        for chunk in ["one ", "", "two"] {
            assert_eq!(sender.send(Bytes::from(chunk)).await, Ok(()));
        }
        drop(sender);
        let read = move || {
            let mut text = String::new();
            let mut piece = [0; 3];
            while let count @ 1.. = reader.read(&mut piece).unwrap() {
                text.push_str(std::str::from_utf8(&piece[..count]).unwrap());
            }
            text
        };
        assert_eq!(tokio::task::spawn_blocking(read).await.unwrap(), "one two");
    }

    #[tokio::test]
    async fn the_input_of_a_refused_execution_is_dropped_and_that_of_an_accepted_one_at_its_end() {
        let streams = StdinStreams::default();
        drop(streams.open("refused", None));
        assert!(streams.take("refused", None).is_none());
        let reader = streams.open("e", None);
        streams.accept("e");
        drop(reader);
        let mut sender = streams.take("e", None).unwrap();
        assert_eq!(sender.send(Bytes::from("unread")).await, Err(Closed));
        streams.close("e");
        assert!(streams.lock().is_empty());
    }

    #[tokio::test]
    async fn only_its_owner_takes_an_input_and_only_once() {
        let streams = StdinStreams::default();
        let _reader = streams.open("e", Some("k"));
        for (id, owner) in [("e", None), ("e", Some("other")), ("f", Some("k"))] {
            assert!(streams.take(id, owner).is_none(), "{id} {owner:?}");
        }
        assert!(streams.take("e", Some("k")).is_some());
        assert!(streams.take("e", Some("k")).is_none());
    }

    #[tokio::test]
    async fn the_end_of_the_execution_closes_the_input_of_an_idle_client() {
        let streams = StdinStreams::default();
        let mut reader = streams.open("e", None);
        let mut sender = streams.take("e", None).unwrap();
        let waiting = tokio::task::spawn_blocking(move || reader.read(&mut [0]).unwrap());
        streams.close("e");
        sender.closed().await;
        drop(sender);
        assert_eq!(waiting.await.unwrap(), 0);
    }
}
