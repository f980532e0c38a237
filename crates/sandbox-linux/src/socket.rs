//! Messages with descriptors, over a socket that preserves message boundaries.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg,
    sendmsg, socketpair,
};
use sandbox_protocol::MAX_DATAGRAM_BYTES;

/// More than any message needs: the largest carries an exec request with its volumes.
const MAX_DESCRIPTORS: usize = 24;

/// A received message. `None` in its place means that the other end is closed.
#[derive(Debug)]
pub(crate) struct Message {
    pub(crate) bytes: Vec<u8>,
    pub(crate) descriptors: Vec<OwnedFd>,
}

/// Creates two connected sockets.
pub(crate) fn pair() -> Result<(OwnedFd, OwnedFd), Errno> {
    socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
}

/// Sets the timeout of sends and receives; they then fail with `Errno::AGAIN`.
pub(crate) fn set_timeout(socket: BorrowedFd<'_>, timeout: Duration) -> Result<(), Errno> {
    set_socket_timeout(socket, Timeout::Recv, Some(timeout))?;
    set_socket_timeout(socket, Timeout::Send, Some(timeout))
}

/// Sends one message. Does not allocate.
pub(crate) fn send(
    socket: BorrowedFd<'_>,
    bytes: &[u8],
    descriptors: &[BorrowedFd<'_>],
) -> Result<(), Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(Errno::TOOBIG);
    }
    loop {
        // If the supervisor is gone, this must be an error, not a signal.
        match sendmsg(socket, &[IoSlice::new(bytes)], &mut ancillary, SendFlags::NOSIGNAL) {
            Ok(_) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
}

/// Waits for one message.
pub(crate) fn receive(socket: BorrowedFd<'_>) -> Result<Option<Message>, Errno> {
    receive_with(socket, RecvFlags::empty())
}

/// Receives a message if there is one; `Errno::AGAIN` if not.
pub(crate) fn try_receive(socket: BorrowedFd<'_>) -> Result<Option<Message>, Errno> {
    receive_with(socket, RecvFlags::DONTWAIT)
}

fn receive_with(socket: BorrowedFd<'_>, flags: RecvFlags) -> Result<Option<Message>, Errno> {
    match receive_partial(socket, flags)? {
        // Dropping the message closes the descriptors that did arrive.
        Some((_, true)) => Err(Errno::MFILE),
        received => Ok(received.map(|(message, _)| message)),
    }
}

/// Receives a message, and whether descriptors are missing from it: the kernel silently drops those
/// for which the descriptor table of this process has no room.
pub(crate) fn receive_partial(
    socket: BorrowedFd<'_>,
    flags: RecvFlags,
) -> Result<Option<(Message, bool)>, Errno> {
    let mut bytes = vec![0; MAX_DATAGRAM_BYTES];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let received = loop {
        let mut buffers = [IoSliceMut::new(&mut bytes)];
        match recvmsg(socket, &mut buffers, &mut ancillary, flags | RecvFlags::CMSG_CLOEXEC) {
            Err(Errno::INTR) => {}
            other => break other?,
        }
    };
    let mut descriptors = Vec::new();
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            descriptors.extend(rights);
        }
    }
    let is_partial = received.flags.contains(ReturnFlags::CTRUNC);
    if received.bytes == 0 && descriptors.is_empty() && !is_partial {
        return Ok(None);
    }
    if received.flags.contains(ReturnFlags::TRUNC) {
        return Err(Errno::MSGSIZE);
    }
    bytes.truncate(received.bytes);
    Ok(Some((Message { bytes, descriptors }, is_partial)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::fd::AsFd;
    use std::time::Instant;

    #[test]
    fn messages_keep_their_boundaries_and_carry_descriptors() {
        let (left, right) = pair().unwrap();
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        send(left.as_fd(), b"one", &[writer.as_fd()]).unwrap();
        send(left.as_fd(), b"two", &[]).unwrap();
        drop(writer);
        let message = receive(right.as_fd()).unwrap().unwrap();
        assert_eq!(message.bytes, b"one");
        rustix::io::write(&message.descriptors[0], b"through").unwrap();
        drop(message);
        let mut text = String::new();
        std::fs::File::from(reader).read_to_string(&mut text).unwrap();
        assert_eq!(text, "through");
        assert_eq!(receive(right.as_fd()).unwrap().unwrap().bytes, b"two");
        assert_eq!(try_receive(right.as_fd()).unwrap_err(), Errno::AGAIN);
        drop(left);
        assert!(receive(right.as_fd()).unwrap().is_none());
    }

    #[test]
    fn a_message_with_missing_descriptors_is_an_error_and_leaves_none_behind() {
        let (left, right) = pair().unwrap();
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        // More than fit: the kernel truncates them like with a full descriptor table.
        let many = vec![writer.as_fd(); MAX_DESCRIPTORS + 8];
        let mut space = vec![MaybeUninit::uninit(); 1024];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        assert!(ancillary.push(SendAncillaryMessage::ScmRights(&many)));
        sendmsg(&left, &[IoSlice::new(b"cut")], &mut ancillary, SendFlags::empty()).unwrap();
        send(left.as_fd(), b"next", &[]).unwrap();
        assert_eq!(receive(right.as_fd()).unwrap_err(), Errno::MFILE);
        assert_eq!(receive(right.as_fd()).unwrap().unwrap().bytes, b"next");
        // The pipe ends when nobody can write to it any more.
        drop(writer);
        assert_eq!(std::fs::File::from(reader).read(&mut [0]).unwrap(), 0);
    }

    #[test]
    fn a_receive_waits_no_longer_than_its_timeout() {
        let (left, _right) = pair().unwrap();
        set_timeout(left.as_fd(), Duration::from_millis(50)).unwrap();
        let begun = Instant::now();
        assert_eq!(receive(left.as_fd()).unwrap_err(), Errno::AGAIN);
        // Nobody receives these, so there is no room for all of them.
        let full = (0..100_000).find_map(|_| send(left.as_fd(), &[0; 1024], &[]).err());
        assert_eq!(full, Some(Errno::AGAIN));
        assert!(begun.elapsed() >= Duration::from_millis(50));
    }
}
