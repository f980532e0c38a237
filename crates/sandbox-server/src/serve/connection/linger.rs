//! Lingering close, for clients that still send.
//!
//! If data arrives at a closed socket, or was unread when it was closed, the kernel sends a reset. The reset discards a
//! response that the client has not read yet. So the server first shuts down the sending direction, and closes the socket
//! when the client has closed its side, or after a timeout.

use std::time::Duration;

use rustix::net::{Shutdown, shutdown};
use tokio::io::AsyncReadExt as _;
use tokio::runtime::Handle;
use tokio::time::timeout;

use super::stream::ClientStream;
use crate::serve::idle::ConnectionPermit;

/// Time for the client to close its side.
const LINGER_TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum size of the data that is discarded meanwhile.
const MAX_LINGER_BYTES: usize = 4 << 20;
const BUFFER_SIZE: usize = 16 << 10;

/// Closes the connection in the background. It keeps its permit until then.
pub(super) fn close(stream: impl ClientStream, permit: ConnectionPermit) {
    // There is no runtime once the server has stopped.
    let Ok(runtime) = Handle::try_current() else {
        return;
    };
    runtime.spawn(async move {
        let _permit = permit;
        // Fails if the client has disconnected.
        if shutdown(&stream, Shutdown::Write).is_ok() {
            let _ = timeout(LINGER_TIMEOUT, discard(stream)).await;
        }
    });
}

async fn discard(mut stream: impl ClientStream) {
    let mut buffer = vec![0; BUFFER_SIZE];
    let mut remaining = MAX_LINGER_BYTES;
    while let Ok(length @ 1..) = stream.read(&mut buffer).await {
        match remaining.checked_sub(length) {
            Some(rest) => remaining = rest,
            None => return,
        }
    }
}
