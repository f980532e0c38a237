//! Sockets: between the agent and the program's process before exec, which carries a filter's listener and failures; and
//! between the supervisor and a shim.

use std::ffi::{c_int, c_void};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd as _, OwnedFd};

use crate::sys::check;

/// Longer messages are cut.
const MAX_MESSAGE_BYTES: usize = 512;
const SOL_SOCKET: c_int = 1;
const SCM_RIGHTS: c_int = 1;
/// `CMSG_LEN` of one descriptor.
const RIGHTS_LENGTH: usize = 20;

/// The kernel's `struct iovec`.
#[repr(C)]
struct IoVec {
    base: *mut u8,
    length: usize,
}

/// The kernel's `struct msghdr`.
#[repr(C)]
struct MessageHeader {
    name: *mut c_void,
    name_length: u32,
    vectors: *mut IoVec,
    vector_count: usize,
    control: *mut Rights,
    control_length: usize,
    flags: c_int,
}

/// A control message with one descriptor, of the size `CMSG_SPACE` demands.
#[repr(C, align(8))]
#[derive(Default)]
struct Rights {
    length: usize,
    level: c_int,
    kind: c_int,
    descriptor: c_int,
    padding: c_int,
}

unsafe extern "C" {
    fn socketpair(domain: c_int, kind: c_int, protocol: c_int, ends: *mut c_int) -> c_int;
    fn sendmsg(socket: c_int, message: *const MessageHeader, flags: c_int) -> isize;
    fn recvmsg(socket: c_int, message: *mut MessageHeader, flags: c_int) -> isize;
}

/// Two ends of a socket that keeps message boundaries. Both close on exec.
pub(crate) fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    const SOCK_SEQPACKET: c_int = 5;
    pair_of(SOCK_SEQPACKET)
}

/// Two ends of a socket that carries two byte streams. Both close on exec.
pub(crate) fn stream_pair() -> io::Result<(OwnedFd, OwnedFd)> {
    const SOCK_STREAM: c_int = 1;
    pair_of(SOCK_STREAM)
}

fn pair_of(kind: c_int) -> io::Result<(OwnedFd, OwnedFd)> {
    const AF_UNIX: c_int = 1;
    const SOCK_CLOEXEC: c_int = 0o2_000_000;
    let mut ends = [0; 2];
    // SAFETY: socketpair(2) writes two descriptors; the array has room for two.
    check(unsafe { socketpair(AF_UNIX, kind | SOCK_CLOEXEC, 0, ends.as_mut_ptr()) })?;
    // SAFETY: the call has just opened both, so nothing else owns them.
    let first = unsafe { OwnedFd::from_raw_fd(ends[0]) };
    // SAFETY: as above.
    Ok((first, unsafe { OwnedFd::from_raw_fd(ends[1]) }))
}

/// Sends a message, with a descriptor if there is one.
pub(crate) fn send(socket: &OwnedFd, bytes: &[u8], descriptor: Option<&OwnedFd>) -> io::Result<()> {
    const MSG_NOSIGNAL: c_int = 0x4000;
    const NONE: c_int = -1;
    let mut vector = IoVec { base: bytes.as_ptr().cast_mut(), length: bytes.len() };
    let mut rights = Rights {
        length: RIGHTS_LENGTH,
        level: SOL_SOCKET,
        kind: SCM_RIGHTS,
        descriptor: descriptor.map_or(NONE, AsRawFd::as_raw_fd),
        padding: 0,
    };
    let mut message = header(&mut vector, &mut rights);
    if descriptor.is_none() {
        message.control_length = 0;
    }
    // SAFETY: sendmsg(2) reads the buffer and the control message that the header points to, with the lengths it
    // gives; all outlive the call, and the kernel writes to none of them.
    let sent = unsafe { sendmsg(socket.as_raw_fd(), &raw const message, MSG_NOSIGNAL) };
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Receives a message and its descriptor. The message is empty when the other end is closed.
pub(crate) fn receive(socket: &OwnedFd) -> io::Result<(Vec<u8>, Option<OwnedFd>)> {
    const MSG_CMSG_CLOEXEC: c_int = 0x4000_0000;
    let mut bytes = vec![0_u8; MAX_MESSAGE_BYTES];
    let mut rights = Rights::default();
    let mut vector = IoVec { base: bytes.as_mut_ptr(), length: bytes.len() };
    let mut message = header(&mut vector, &mut rights);
    // SAFETY: recvmsg(2) writes to the buffer and the control message that the header points to, no more than the
    // lengths it gives; all outlive the call.
    let count = unsafe { recvmsg(socket.as_raw_fd(), &raw mut message, MSG_CMSG_CLOEXEC) };
    let has_rights = message.control_length >= RIGHTS_LENGTH;
    let count = usize::try_from(count).map_err(|_| io::Error::last_os_error())?;
    bytes.truncate(count);
    let has_rights = has_rights && (rights.level, rights.kind) == (SOL_SOCKET, SCM_RIGHTS);
    // SAFETY: the kernel has just installed the descriptor in this process, so nothing else owns it.
    let descriptor = has_rights.then(|| unsafe { OwnedFd::from_raw_fd(rights.descriptor) });
    Ok((bytes, descriptor))
}

fn header(vector: &mut IoVec, rights: &mut Rights) -> MessageHeader {
    MessageHeader {
        name: std::ptr::null_mut(),
        name_length: 0,
        vectors: vector,
        vector_count: 1,
        control: rights,
        control_length: size_of::<Rights>(),
        flags: 0,
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Read as _;

    use super::*;
    use crate::sys;

    #[test]
    fn messages_keep_their_boundaries_and_carry_a_descriptor() {
        let (left, right) = pair().unwrap();
        let (reader, writer) = sys::pipe().unwrap();
        send(&left, b"one", None).unwrap();
        send(&left, b"two", Some(&writer)).unwrap();
        drop((left, writer));
        let (bytes, descriptor) = receive(&right).unwrap();
        assert_eq!((bytes.as_slice(), descriptor.is_none()), (&b"one"[..], true));
        let (bytes, descriptor) = receive(&right).unwrap();
        assert_eq!(bytes, b"two");
        sys::write_byte(descriptor.expect("it was sent").as_raw_fd());
        assert_eq!(File::from(reader).read(&mut [0; 4]).unwrap(), 1);
        let (bytes, descriptor) = receive(&right).unwrap();
        assert_eq!((bytes.as_slice(), descriptor.is_none()), (&b""[..], true));
    }

    #[test]
    fn a_closed_peer_is_an_error_and_not_a_signal() {
        let (left, right) = pair().unwrap();
        drop(right);
        assert_eq!(send(&left, b"x", None).unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }
}
