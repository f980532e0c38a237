//! The descriptors of a slot's processes.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// The program's ends of its streams, and where a waiting process receives its request: a runtime
/// on standard input, the stub on a socket.
#[derive(Debug)]
pub(crate) struct Streams {
    pub(crate) stdin: OwnedFd,
    pub(crate) stdout: OwnedFd,
    pub(crate) stderr: OwnedFd,
    pub(crate) job: OwnedFd,
    pub(crate) requests: OwnedFd,
}

impl Streams {
    /// Takes them from the front of a request's descriptors.
    pub(crate) fn take(descriptors: &mut impl Iterator<Item = OwnedFd>) -> Option<Self> {
        Some(Self {
            stdin: descriptors.next()?,
            stdout: descriptors.next()?,
            stderr: descriptors.next()?,
            job: descriptors.next()?,
            requests: descriptors.next()?,
        })
    }

    /// Standard input, output and error.
    pub(crate) fn of_program(&self) -> [BorrowedFd<'_>; 3] {
        [&self.stdin, &self.stdout, &self.stderr].map(AsFd::as_fd)
    }

    pub(crate) fn all(&self) -> [BorrowedFd<'_>; 5] {
        [&self.stdin, &self.stdout, &self.stderr, &self.job, &self.requests].map(AsFd::as_fd)
    }
}
