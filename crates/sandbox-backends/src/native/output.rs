//! What the program prints: read as it comes, kept up to the limit, told to the observer.

use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use sandbox_core::{BackendError, Observer, StreamKind};

use super::failed;

const BUFFER: usize = 64 * 1024;

/// Our ends of the program's two streams.
pub(crate) struct Streams {
    pub(crate) stdout: Option<OwnedFd>,
    pub(crate) stderr: Option<OwnedFd>,
    buffer: Vec<u8>,
}

/// What is kept.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
    pub(crate) both: Vec<u8>,
    pub(crate) stdout_truncated: bool,
    pub(crate) stderr_truncated: bool,
    limit: usize,
}

impl Streams {
    /// Two pipes; their other ends are for the program.
    pub(crate) fn open() -> Result<(Self, [OwnedFd; 2]), BackendError> {
        let open = || -> Result<(OwnedFd, OwnedFd), Errno> {
            let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
            // Only our end: the program must find its own in the usual blocking mode.
            rustix::io::ioctl_fionbio(&reader, true)?;
            Ok((reader, writer))
        };
        let pipes = open().and_then(|stdout| Ok((stdout, open()?)));
        let ((stdout, out), (stderr, err)) =
            pipes.map_err(|error| failed("make the output pipes", error))?;
        let streams = Self {
            stdout: Some(stdout),
            stderr: Some(stderr),
            buffer: vec![0; BUFFER],
        };
        Ok((streams, [out, err]))
    }

    /// Reads what is there on one stream, once. A stream that ended is closed.
    pub(crate) fn read(
        &mut self,
        kind: StreamKind,
        kept: &mut Kept,
        observer: &mut dyn Observer,
    ) -> Progress {
        let stream = match kind {
            StreamKind::Stdout => &mut self.stdout,
            StreamKind::Stderr => &mut self.stderr,
        };
        let Some(pipe) = stream else {
            return Progress::Ended;
        };
        match rustix::io::read(pipe, &mut self.buffer[..]) {
            Ok(0) => {
                *stream = None;
                Progress::Ended
            }
            Ok(count) => {
                let taken = kept.take(kind, &self.buffer[..count]);
                if taken > 0 {
                    observer.output(kind, &self.buffer[..taken]);
                }
                Progress::Read
            }
            Err(Errno::AGAIN | Errno::INTR) => Progress::Nothing,
            Err(_) => {
                *stream = None;
                Progress::Ended
            }
        }
    }

    /// Reads both to their ends, once nobody writes any more.
    pub(crate) fn drain(&mut self, kept: &mut Kept, observer: &mut dyn Observer) {
        for kind in [StreamKind::Stdout, StreamKind::Stderr] {
            while matches!(self.read(kind, kept, observer), Progress::Read) {}
        }
    }
}

/// What reading a stream came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Something was there; there may be more.
    Read,
    /// Nothing now.
    Nothing,
    /// Nothing any more.
    Ended,
}

impl Kept {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            limit,
            ..Self::default()
        }
    }

    /// Keeps what fits and says how much that was.
    fn take(&mut self, kind: StreamKind, bytes: &[u8]) -> usize {
        let room = self.limit - self.both.len();
        let taken = room.min(bytes.len());
        let (stream, truncated) = match kind {
            StreamKind::Stdout => (&mut self.stdout, &mut self.stdout_truncated),
            StreamKind::Stderr => (&mut self.stderr, &mut self.stderr_truncated),
        };
        stream.extend_from_slice(&bytes[..taken]);
        *truncated |= taken < bytes.len();
        self.both.extend_from_slice(&bytes[..taken]);
        taken
    }

    /// Whether more came than may be kept.
    pub(crate) fn is_over(&self) -> bool {
        self.stdout_truncated || self.stderr_truncated
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bytes_up_to_the_limit_are_kept() {
        let mut kept = Kept::new(5);
        assert_eq!(kept.take(StreamKind::Stdout, b"abc"), 3);
        assert!(!kept.is_over());
        assert_eq!(kept.take(StreamKind::Stderr, b"def"), 2);
        assert_eq!(kept.take(StreamKind::Stdout, b"g"), 0);
        assert_eq!(
            (&kept.stdout[..], &kept.stderr[..], &kept.both[..]),
            (&b"abc"[..], &b"de"[..], &b"abcde"[..])
        );
        assert!(kept.stdout_truncated && kept.stderr_truncated && kept.is_over());
    }
}
