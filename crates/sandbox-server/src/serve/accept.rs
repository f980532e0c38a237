//! The accept loop, with a limit of open connections.
//!
//! It acquires a permit before it accepts a connection: further connections wait in the kernel's backlog, where they cost
//! little. Closing them instead would turn every short burst into errors. The timeouts of [`connection`] bound the wait.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use super::connection::{self, ClientStream, Shared};
use super::idle::{ConnectionPermit, OpenConnections};
use crate::api::Peer;

/// Minimum time between log lines about failures to accept.
const LOG_INTERVAL: Duration = Duration::from_secs(10);

/// Delay after a local failure, such as running out of descriptors: an immediate retry would fail too.
const RETRY_DELAY: Duration = Duration::from_millis(100);

/// A socket that clients connect to.
pub(super) trait Listener {
    /// A connection.
    type Stream: ClientStream;

    /// The next connection. Cancel safe.
    async fn accept(&self) -> io::Result<(Self::Stream, Peer)>;
}

impl Listener for TcpListener {
    type Stream = TcpStream;

    async fn accept(&self) -> io::Result<(TcpStream, Peer)> {
        let (stream, address) = Self::accept(self).await?;
        Ok((stream, Peer::Remote(address)))
    }
}

/// Serves until the sender of `stop` is dropped, then until every open connection has ended. Dropping the future closes
/// the remaining ones.
pub(super) async fn serve(listener: impl Listener, shared: Arc<Shared>, stop: watch::Receiver<()>) {
    let permits = Arc::new(Semaphore::new(shared.limits.connections));
    let open = shared.open.clone();
    let mut acceptor = Acceptor { listener, permits, open, last_logged: None };
    let mut connections = JoinSet::new();
    let mut stopped = stop.clone();
    loop {
        tokio::select! {
            (stream, peer, permit) = acceptor.next() => {
                let shared = Arc::clone(&shared);
                connections.spawn(connection::serve(stream, peer, permit, shared, stop.clone()));
            }
            // Remove the results of finished tasks; a panic has been logged.
            Some(_) = connections.join_next() => {}
            _ = stopped.changed() => break,
        }
    }
    // Close the listener: the kernel refuses new connections at once.
    drop(acceptor);
    while connections.join_next().await.is_some() {}
}

struct Acceptor<L> {
    listener: L,
    permits: Arc<Semaphore>,
    open: OpenConnections,
    /// When a failure to accept was last logged.
    last_logged: Option<Instant>,
}

impl<L: Listener> Acceptor<L> {
    /// The next connection and its permit. Cancel safe.
    async fn next(&mut self) -> (L::Stream, Peer, ConnectionPermit) {
        loop {
            let permit = Arc::clone(&self.permits).acquire_owned().await;
            let permit = permit.expect("the semaphore is never closed");
            match self.listener.accept().await {
                Ok((stream, peer)) => return (stream, peer, self.open.open(permit)),
                // The client disconnected before it was accepted.
                Err(error) if is_of_one_connection(&error) => {}
                Err(error) => self.log_and_wait(&error).await,
            }
        }
    }

    async fn log_and_wait(&mut self, error: &io::Error) {
        if self.last_logged.is_none_or(|logged| logged.elapsed() >= LOG_INTERVAL) {
            tracing::error!(%error, "failed to accept a connection");
            self.last_logged = Some(Instant::now());
        }
        tokio::time::sleep(RETRY_DELAY).await;
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
