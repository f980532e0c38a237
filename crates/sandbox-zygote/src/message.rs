//! Datagrams with descriptors, without an allocator.

use core::ffi::{c_int, c_long};

use sandbox_protocol::zygote::{ForkReport, ForkStep};

use crate::sys::{self, RECVMSG, SENDMSG, syscall};

/// More than any request has.
pub(crate) const MAX_DESCRIPTORS: usize = 16;

/// The kernel's `struct iovec`.
#[repr(C)]
struct IoVec {
    base: *mut u8,
    length: usize,
}

/// The kernel's `struct msghdr`.
#[repr(C)]
struct MessageHeader {
    name: usize,
    name_length: u32,
    vectors: *mut IoVec,
    vector_count: usize,
    control: *mut Rights,
    control_length: usize,
    flags: c_int,
}

/// A control message with descriptors.
#[repr(C, align(8))]
struct Rights {
    length: usize,
    level: c_int,
    kind: c_int,
    descriptors: [c_int; MAX_DESCRIPTORS],
}

const SOL_SOCKET: c_int = 1;
const SCM_RIGHTS: c_int = 1;
/// Size of a control message before its descriptors.
const RIGHTS_HEADER_BYTES: usize = 16;
const DESCRIPTOR_BYTES: usize = size_of::<c_int>();

fn header(vector: &mut IoVec, rights: &mut Rights, control_length: usize) -> MessageHeader {
    MessageHeader {
        name: 0,
        name_length: 0,
        vectors: vector,
        vector_count: 1,
        control: rights,
        control_length,
        flags: 0,
    }
}

/// Waits for a message. Returns its length, 0 if the other end is closed, and the number of descriptors.
pub(crate) fn receive(
    socket: c_int,
    bytes: &mut [u8],
    descriptors: &mut [c_int; MAX_DESCRIPTORS],
) -> (usize, usize) {
    const MSG_CMSG_CLOEXEC: c_long = 0x4000_0000;
    let mut rights = Rights { length: 0, level: 0, kind: 0, descriptors: [-1; MAX_DESCRIPTORS] };
    let mut vector = IoVec { base: bytes.as_mut_ptr(), length: bytes.len() };
    let mut header = header(&mut vector, &mut rights, size_of::<Rights>());
    // SAFETY: recvmsg(2) writes to the buffer and the control message that the header points to, no more than the
    // lengths it gives. Both outlive the call.
    let received =
        unsafe { syscall(RECVMSG, c_long::from(socket), &raw mut header, MSG_CMSG_CLOEXEC) };
    let has_rights = header.control_length >= RIGHTS_HEADER_BYTES
        && (rights.level, rights.kind) == (SOL_SOCKET, SCM_RIGHTS);
    let count = rights.length.saturating_sub(RIGHTS_HEADER_BYTES) / DESCRIPTOR_BYTES;
    let count = if has_rights { count.min(MAX_DESCRIPTORS) } else { 0 };
    match usize::try_from(received) {
        Ok(length) if length > 0 => {
            *descriptors = rights.descriptors;
            (length, count)
        }
        _ => (0, 0),
    }
}

/// Sends a message, with a descriptor if there is one. A negative result is an error.
pub(crate) fn send(socket: c_int, bytes: &[u8], descriptor: Option<c_int>) -> c_long {
    let mut rights = Rights {
        length: RIGHTS_HEADER_BYTES + DESCRIPTOR_BYTES,
        level: SOL_SOCKET,
        kind: SCM_RIGHTS,
        descriptors: [-1; MAX_DESCRIPTORS],
    };
    // With padding to the next multiple of eight.
    let mut control_length = 0;
    if let Some(descriptor) = descriptor {
        rights.descriptors[0] = descriptor;
        control_length = RIGHTS_HEADER_BYTES + 2 * DESCRIPTOR_BYTES;
    }
    send_with(socket, bytes, &mut rights, control_length)
}

fn send_with(socket: c_int, bytes: &[u8], rights: &mut Rights, control_length: usize) -> c_long {
    const MSG_NOSIGNAL: c_long = 0x4000;
    let mut vector = IoVec { base: bytes.as_ptr().cast_mut(), length: bytes.len() };
    let header = header(&mut vector, rights, control_length);
    // SAFETY: sendmsg(2) reads the buffer and the control message that the header points to, with the lengths it gives.
    // Both outlive the call, and the kernel writes to neither.
    unsafe { syscall(SENDMSG, c_long::from(socket), &raw const header, MSG_NOSIGNAL) }
}

/// Reports the error that the last call left.
pub(crate) fn report_failure(report: c_int, step: ForkStep) {
    send(report, &ForkReport::Failed { step, errno: sys::errno() }.encode(), None);
}

#[cfg(test)]
pub(crate) mod tests {
    use std::io::{Read as _, Write as _};
    use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};

    use super::*;

    unsafe extern "C" {
        fn socketpair(domain: c_int, kind: c_int, protocol: c_int, ends: *mut c_int) -> c_int;
    }

    pub(crate) fn pair() -> (OwnedFd, OwnedFd) {
        const AF_UNIX: c_int = 1;
        const SOCK_SEQPACKET_CLOEXEC: c_int = 0o2_000_005;
        let mut ends = [-1; 2];
        // SAFETY: socketpair(2) writes two descriptors; the array has room for two.
        let result = unsafe { socketpair(AF_UNIX, SOCK_SEQPACKET_CLOEXEC, 0, ends.as_mut_ptr()) };
        assert_eq!(result, 0);
        // SAFETY: the call has just opened it, so nothing else owns it.
        let own = |end| unsafe { OwnedFd::from_raw_fd(end) };
        (own(ends[0]), own(ends[1]))
    }

    pub(crate) fn send_many(socket: &OwnedFd, bytes: &[u8], descriptors: &[c_int]) {
        let length = RIGHTS_HEADER_BYTES + descriptors.len() * DESCRIPTOR_BYTES;
        let mut rights = Rights {
            length,
            level: SOL_SOCKET,
            kind: SCM_RIGHTS,
            descriptors: [-1; MAX_DESCRIPTORS],
        };
        rights.descriptors[..descriptors.len()].copy_from_slice(descriptors);
        let sent = send_with(socket.as_raw_fd(), bytes, &mut rights, length.next_multiple_of(8));
        assert_eq!(usize::try_from(sent), Ok(bytes.len()));
    }

    fn received(socket: &OwnedFd) -> (Vec<u8>, Vec<OwnedFd>) {
        let mut bytes = [0; 64];
        let mut descriptors = [-1; MAX_DESCRIPTORS];
        let (length, count) = receive(socket.as_raw_fd(), &mut bytes, &mut descriptors);
        // SAFETY: the kernel has just installed them in this process, so nothing else owns them.
        let own = |descriptor: &c_int| unsafe { OwnedFd::from_raw_fd(*descriptor) };
        (bytes[..length].to_vec(), descriptors[..count].iter().map(own).collect())
    }

    #[test]
    fn messages_keep_their_boundaries_and_carry_descriptors() {
        let (left, right) = pair();
        let (mut reader, writer) = std::io::pipe().unwrap();
        assert_eq!(send(left.as_raw_fd(), b"one", None), 3);
        assert_eq!(send(left.as_raw_fd(), b"two", Some(writer.as_raw_fd())), 3);
        for count in [1, 5, MAX_DESCRIPTORS] {
            send_many(&left, b"many", &vec![writer.as_raw_fd(); count]);
        }
        drop((left, writer));
        let (bytes, descriptors) = received(&right);
        assert_eq!((bytes.as_slice(), descriptors.len()), (&b"one"[..], 0));
        let (bytes, descriptors) = received(&right);
        assert_eq!((bytes.as_slice(), descriptors.len()), (&b"two"[..], 1));
        std::fs::File::from(descriptors.into_iter().next().unwrap()).write_all(b"x").unwrap();
        for count in [1, 5, MAX_DESCRIPTORS] {
            let (bytes, descriptors) = received(&right);
            assert_eq!((bytes.as_slice(), descriptors.len()), (&b"many"[..], count));
        }
        assert_eq!(received(&right).0, b"");
        // Every descriptor was received and closed, so the pipe ends.
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "x");
    }

    #[test]
    fn a_closed_peer_is_an_error_and_not_a_signal() {
        let (left, right) = pair();
        drop(right);
        assert_eq!(send(left.as_raw_fd(), b"x", None), -1);
    }
}
