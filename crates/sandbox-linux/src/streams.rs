//! The descriptors of a slot's processes.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// The program's ends of its streams, and where a process that waits to become the program receives its request: a runtime on
/// its standard input, the stub on a socket.
#[derive(Debug)]
pub(crate) struct Streams {
    pub(crate) stdin: OwnedFd,
    pub(crate) stdout: OwnedFd,
    pub(crate) stderr: OwnedFd,
    pub(crate) job: OwnedFd,
    pub(crate) orders: OwnedFd,
}

impl Streams {
    /// Takes them from the front of a request's descriptors.
    pub(crate) fn take(descriptors: &mut impl Iterator<Item = OwnedFd>) -> Option<Self> {
        Some(Self {
            stdin: descriptors.next()?,
            stdout: descriptors.next()?,
            stderr: descriptors.next()?,
            job: descriptors.next()?,
            orders: descriptors.next()?,
        })
    }

    pub(crate) fn all(&self) -> [BorrowedFd<'_>; 5] {
        [&self.stdin, &self.stdout, &self.stderr, &self.job, &self.orders].map(AsFd::as_fd)
    }
}
