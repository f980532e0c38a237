//! Sends exec requests to init or the stub: in the datagram if they are short, otherwise in a
//! sealed memory file.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use rustix::io::Errno;
use sandbox_protocol::exec::{ExecRequest, InitMessage};
use sandbox_protocol::{MAX_DATAGRAM_BYTES, Message as _};

use crate::mapped::MappedFile;
use crate::socket::{self, Message};
use crate::step::{AtStep, StepError};

/// A received request.
pub(crate) struct ExecMessage {
    bytes: Vec<u8>,
    file: Option<MappedFile>,
    /// Its other descriptors.
    pub(crate) descriptors: Vec<OwnedFd>,
}

impl ExecMessage {
    /// Extracts the request from a message.
    pub(crate) fn open(message: Message) -> Result<Self, StepError> {
        let Message { bytes, mut descriptors } = message;
        let file = match InitMessage::decode(&bytes) {
            Ok(InitMessage::Exec(_)) => None,
            Ok(InitMessage::ExecInFile) if !descriptors.is_empty() => {
                let file = descriptors.remove(0);
                Some(MappedFile::new(file.as_fd()).at("map the request")?)
            }
            _ => return Err(Errno::PROTO).at("decode the request"),
        };
        Ok(Self { bytes, file, descriptors })
    }

    /// Decodes the request.
    pub(crate) fn read(&self) -> Result<ExecRequest<'_>, StepError> {
        let request = match (&self.file, InitMessage::decode(&self.bytes)) {
            (Some(mapped), _) => ExecRequest::decode(mapped.bytes()),
            (None, Ok(InitMessage::Exec(request))) => ExecRequest::decode(request),
            (None, _) => return Err(Errno::PROTO).at("decode the request"),
        };
        request.map_err(|_| Errno::PROTO).at("decode the request")
    }
}

/// Sends a request.
pub(crate) fn send(
    socket: BorrowedFd<'_>,
    request: &ExecRequest<'_>,
    descriptors: &[BorrowedFd<'_>],
) -> Result<(), StepError> {
    let bytes = InitMessage::encode_exec(request);
    if bytes.len() <= MAX_DATAGRAM_BYTES {
        return socket::send(socket, &bytes, descriptors).at("send the request");
    }
    let request = InitMessage::request_in(&bytes).map_err(|_| Errno::PROTO);
    let file = sealed_memory(request.at("send the request")?)?;
    let mut with_file = vec![file.as_fd()];
    with_file.extend(descriptors);
    socket::send(socket, &InitMessage::ExecInFile.encode(), &with_file).at("send the request")
}

/// Creates a sealed memory file with these bytes.
fn sealed_memory(bytes: &[u8]) -> Result<OwnedFd, StepError> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let file = memfd_create("sandbox", flags).at("create a memory file")?;
    let mut rest = bytes;
    while !rest.is_empty() {
        let written = rustix::io::write(&file, rest).at("write a memory file")?;
        rest = &rest[written..];
    }
    let seals = SealFlags::SEAL | SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE;
    fcntl_add_seals(&file, seals).at("seal a memory file")?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use sandbox_protocol::exec::ExecFile;

    use super::*;

    #[test]
    fn a_request_of_any_size_arrives_with_its_descriptors() {
        for size in [0, MAX_DATAGRAM_BYTES, 1 << 20] {
            let contents = vec![7; size];
            let file = ExecFile { path: "a", contents: &contents, executable: false };
            let request = ExecRequest { files: vec![file], ..ExecRequest::default() };
            let (local, peer) = socket::pair().unwrap();
            let descriptor = local.try_clone().unwrap();
            send(local.as_fd(), &request, &[descriptor.as_fd()]).unwrap();
            let received = socket::receive(peer.as_fd()).unwrap().unwrap();
            let message = ExecMessage::open(received).unwrap();
            assert_eq!(message.descriptors.len(), 1, "{size}");
            assert_eq!(message.read().unwrap(), request);
        }
    }

    #[test]
    fn a_message_that_is_no_request_is_refused() {
        let (local, peer) = socket::pair().unwrap();
        // The second refers to a file without a descriptor; the third is truncated.
        for bytes in [&[3][..], &[2], &[9], &[1, 0]] {
            socket::send(local.as_fd(), bytes, &[]).unwrap();
            let received = socket::receive(peer.as_fd()).unwrap().unwrap();
            let opened = ExecMessage::open(received).and_then(|message| message.read().map(drop));
            assert_eq!(opened.unwrap_err().cause, Errno::PROTO, "{bytes:?}");
        }
    }
}
