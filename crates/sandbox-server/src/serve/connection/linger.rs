//! Closing a connection whose client still sends.
//!
//! The kernel answers bytes that arrive at a closed socket, or that nobody read before it was closed, with a
//! reset, and the reset makes the client's kernel throw away an answer that its program has not read yet. So
//! the socket is closed in one direction first, and in the other when the client has closed it, or soon.

use std::time::Duration;

use rustix::net::{Shutdown, shutdown};
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;

/// How long the client has to close its side.
const LINGER_TIMEOUT: Duration = Duration::from_secs(2);
/// The most that is read and thrown away meanwhile.
const MAX_LINGER_BYTES: usize = 4 << 20;
const BUFFER_SIZE: usize = 16 << 10;

/// Closes it in the background; its place is taken until then.
pub(super) fn close(stream: TcpStream, place: OwnedSemaphorePermit) {
    // Without a runtime the server has come to its end.
    let Ok(runtime) = Handle::try_current() else {
        return;
    };
    runtime.spawn(async move {
        let _place = place;
        // It fails if the client is gone, and then there is nothing to wait for.
        if shutdown(&stream, Shutdown::Write).is_ok() {
            let _ = timeout(LINGER_TIMEOUT, discard(stream)).await;
        }
    });
}

async fn discard(mut stream: TcpStream) {
    let mut buffer = vec![0; BUFFER_SIZE];
    let mut left = MAX_LINGER_BYTES;
    while let Ok(length @ 1..) = stream.read(&mut buffer).await {
        match left.checked_sub(length) {
            Some(rest) => left = rest,
            None => return,
        }
    }
}
