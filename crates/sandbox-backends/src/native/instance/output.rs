//! The output pipes of a process of an instance.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Gid, Uid};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use sandbox_core::StreamKind;

use crate::supervise::Supervision;

const BUFFER_BYTES: usize = 64 * 1024;
/// A program may write as fast as it is read, so other events are handled after this many reads.
const MAX_READS: usize = 16;

/// Both pipes, before the process has its ends.
pub(super) struct Pipes {
    stdout: (OwnedFd, OwnedFd),
    stderr: (OwnedFd, OwnedFd),
}

/// The supervisor's ends; `None` after the end of a stream.
pub(super) struct OutputReaders {
    stdout: Option<OwnedFd>,
    stderr: Option<OwnedFd>,
    buffer: Vec<u8>,
}

impl Pipes {
    pub(super) fn open() -> Result<Self, Errno> {
        Ok(Self { stdout: open()?, stderr: open()? })
    }

    /// Makes the program's user their owner, so that the program can reopen them by name
    /// (`/dev/stdout`).
    pub(super) fn give_to(&self, owner: u32) -> Result<(), Errno> {
        let (user, group) = (Some(Uid::from_raw(owner)), Some(Gid::from_raw(owner)));
        rustix::fs::fchown(&self.stdout.1, user, group)?;
        rustix::fs::fchown(&self.stderr.1, user, group)
    }

    /// The program's ends: standard output and standard error.
    pub(super) fn writers(&self) -> (BorrowedFd<'_>, BorrowedFd<'_>) {
        (self.stdout.1.as_fd(), self.stderr.1.as_fd())
    }

    /// The supervisor's ends, after the program got its own.
    pub(super) fn into_readers(self) -> OutputReaders {
        let (stdout, stderr) = (Some(self.stdout.0), Some(self.stderr.0));
        OutputReaders { stdout, stderr, buffer: vec![0; BUFFER_BYTES] }
    }
}

impl OutputReaders {
    /// Readable when the program has written, or when a stream has ended.
    pub(super) fn watched(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        [&self.stdout, &self.stderr].into_iter().flatten().map(AsFd::as_fd)
    }

    /// Reads what is there, up to a bound.
    pub(super) fn read(&mut self, supervision: &mut Supervision<'_>) {
        for kind in [StreamKind::Stdout, StreamKind::Stderr] {
            for _ in 0..MAX_READS {
                if !self.read_once(kind, supervision) {
                    break;
                }
            }
        }
    }

    /// Reads what is left after all writers are gone.
    pub(super) fn drain(&mut self, supervision: &mut Supervision<'_>) {
        for kind in [StreamKind::Stdout, StreamKind::Stderr] {
            while self.read_once(kind, supervision) {}
        }
    }

    /// Reads once; false if there is nothing.
    fn read_once(&mut self, kind: StreamKind, supervision: &mut Supervision<'_>) -> bool {
        let stream = match kind {
            StreamKind::Stdout => &mut self.stdout,
            StreamKind::Stderr => &mut self.stderr,
        };
        let Some(reader) = stream else { return false };
        match rustix::io::read(reader, &mut self.buffer[..]) {
            Ok(count) if count > 0 => {
                supervision.output(kind, &self.buffer[..count]);
                true
            }
            // Read again when the pipe is readable.
            Err(Errno::AGAIN | Errno::INTR) => false,
            Ok(_) | Err(_) => {
                *stream = None;
                false
            }
        }
    }
}

fn open() -> Result<(OwnedFd, OwnedFd), Errno> {
    let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
    // Only the supervisor's end: the program expects its own to block.
    rustix::io::ioctl_fionbio(&reader, true)?;
    Ok((reader, writer))
}
