use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};

use super::message::{Reply, send};

/// Standard input that a client reads for us, piece by piece as it is wanted. It ends when the client says
/// so, or when nobody listens to the client any more.
pub(super) struct RemoteInput {
    to_client: Arc<Mutex<UnixStream>>,
    pieces: Receiver<Vec<u8>>,
}

impl RemoteInput {
    /// Input that is asked for on this connection; what comes is to be sent to the other half.
    pub(super) fn new(to_client: Arc<Mutex<UnixStream>>) -> (Sender<Vec<u8>>, Self) {
        let (sender, pieces) = mpsc::channel();
        (sender, Self { to_client, pieces })
    }
}

impl Read for RemoteInput {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let to_client = self.to_client.lock().unwrap_or_else(PoisonError::into_inner);
        send(&*to_client, &Reply::WantInput(buffer.len()))?;
        drop(to_client);
        let Ok(piece) = self.pieces.recv() else { return Ok(0) };
        let target = buffer.get_mut(..piece.len());
        target.ok_or(io::ErrorKind::InvalidData)?.copy_from_slice(&piece);
        Ok(piece.len())
    }
}
