//! Lets connections in, as many as there are places for.
//!
//! A place is taken before a connection is accepted: those that find none wait with the kernel, where
//! they cost next to nothing, and are let in as others go. Closing them instead would turn every short
//! rush into errors; and since each place comes free within the timeouts of [`connection`], nobody
//! waits for ever.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;

use super::connection::{self, Shared};

/// Between two lines of the log about failing to accept.
const BETWEEN_WORDS: Duration = Duration::from_secs(10);

/// After a failure that lies with us, such as no descriptor being left, another try at once would fail
/// as well.
const BEFORE_ANOTHER_TRY: Duration = Duration::from_millis(100);

/// Serves until it is told to stop, which dropping the sender does; then until every connection that was
/// let in has ended. Dropping the future closes those that have not.
pub(super) async fn serve(listener: TcpListener, shared: Arc<Shared>, stop: watch::Receiver<()>) {
    let places = Arc::new(Semaphore::new(shared.limits.connections));
    let mut door = Door { listener, places, told: None };
    let mut connections = JoinSet::new();
    let mut told = stop.clone();
    loop {
        tokio::select! {
            (stream, peer, place) = door.next() => {
                let shared = Arc::clone(&shared);
                connections.spawn(connection::serve(stream, peer, place, shared, stop.clone()));
            }
            // Their results are kept until somebody asks; a panic was told by the panic itself.
            Some(_) = connections.join_next() => {}
            _ = told.changed() => break,
        }
    }
    // From here on whoever connects is refused by the kernel rather than left waiting.
    drop(door);
    while connections.join_next().await.is_some() {}
}

struct Door {
    listener: TcpListener,
    places: Arc<Semaphore>,
    /// When it was last told that accepting fails.
    told: Option<Instant>,
}

impl Door {
    /// The next connection and its place. May be dropped while it waits, and called again.
    async fn next(&mut self) -> (TcpStream, SocketAddr, OwnedSemaphorePermit) {
        loop {
            let place = Arc::clone(&self.places).acquire_owned().await;
            let place = place.expect("the places are never closed");
            match self.listener.accept().await {
                Ok((stream, peer)) => return (stream, peer, place),
                // The client went away before its turn came.
                Err(error) if is_of_one_connection(&error) => {}
                Err(error) => self.wait_after(&error).await,
            }
        }
    }

    async fn wait_after(&mut self, error: &io::Error) {
        // Now and then, not for each connection that waits while others come and go.
        if self.told.is_none_or(|told| told.elapsed() >= BETWEEN_WORDS) {
            tracing::error!(%error, "no connection can be accepted for now");
            self.told = Some(Instant::now());
        }
        tokio::time::sleep(BEFORE_ANOTHER_TRY).await;
    }
}

fn is_of_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionRefused
    )
}
