//! What the program prints: read as it comes, kept up to the limit, told to the observer.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Gid, Uid};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, fcntl_setpipe_size, pipe_with};
use sandbox_core::{Observer, StreamKind};
use sandbox_linux::write_order::{WriteOrder, Written};

const BUFFER: usize = 64 * 1024;

/// The two pipes of a slot, made before there is a program.
pub(crate) struct Pipes {
    stdout: Stream,
    stderr: Stream,
}

/// The program's two streams, listened to.
pub(crate) struct Streams {
    /// Declared first, so that it is dropped before the pipes it listens to.
    order: WriteOrder,
    stdout: Stream,
    stderr: Stream,
    buffer: Vec<u8>,
    /// How many writes were announced so far.
    announced: usize,
}

struct Stream {
    reader: OwnedFd,
    /// Kept to change its mode; that is why the end of a stream is not seen, and not waited for.
    writer: OwnedFd,
    mode: Mode,
    /// Packets since the other stream was written to.
    in_a_row: usize,
}

/// How a stream is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// A write at a time, in the order in which both streams are written.
    Packets,
    /// As much as there is, for a stream that is written to again and again.
    Bulk,
}

/// So many packets of one stream in a row have no order to lose, and are too slow one by one.
const PACKETS_BEFORE_BULK: usize = 256;
/// After so many writes both streams are read in bulk. Announcements are queued signals, and a program
/// that writes as fast as it can, or only tries to, must not fill the queue that all of this user's
/// processes share.
const MAX_ANNOUNCED_WRITES: usize = 20_000;
/// A longer write arrives as packets of this size and a rest.
const MAX_PACKET_BYTES: usize = 4096;

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

impl Pipes {
    pub(crate) fn open() -> Result<Self, Errno> {
        Ok(Self { stdout: Stream::open()?, stderr: Stream::open()? })
    }

    /// Gives them to the program's user, if it is another than ours: a program may open its own streams
    /// again by name, which asks who owns them.
    pub(crate) fn give_to(&self, owner: u32) -> Result<(), Errno> {
        let (user, group) = (Some(Uid::from_raw(owner)), Some(Gid::from_raw(owner)));
        rustix::fs::fchown(&self.stdout.writer, user, group)?;
        rustix::fs::fchown(&self.stderr.writer, user, group)
    }

    /// The ends for the program: standard output and standard error.
    pub(crate) fn writers(&self) -> (BorrowedFd<'_>, BorrowedFd<'_>) {
        (self.stdout.writer.as_fd(), self.stderr.writer.as_fd())
    }

    /// Our ends.
    pub(crate) fn readers(&self) -> (BorrowedFd<'_>, BorrowedFd<'_>) {
        (self.stdout.reader.as_fd(), self.stderr.reader.as_fd())
    }
}

impl Streams {
    /// Listens, from this thread.
    pub(crate) fn listen(Pipes { stdout, stderr }: Pipes) -> Result<Self, Errno> {
        let order = WriteOrder::new([stdout.reader.as_fd(), stderr.reader.as_fd()])?;
        Ok(Self { order, stdout, stderr, buffer: vec![0; BUFFER], announced: 0 })
    }

    /// What to poll: when one of these is readable, [`Streams::read`] has something to do.
    pub(crate) fn watched(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let bulk =
            [&self.stdout, &self.stderr].into_iter().filter(|stream| stream.mode == Mode::Bulk);
        std::iter::once(self.order.fd()).chain(bulk.map(|stream| stream.reader.as_fd()))
    }

    /// Reads what is there, in order; false if nothing was announced.
    pub(crate) fn read(&mut self, kept: &mut Kept, observer: &mut dyn Observer) -> bool {
        let written = self.order.take();
        for what in &written {
            let (kind, other) = match what {
                Written::First => (StreamKind::Stdout, StreamKind::Stderr),
                Written::Second => (StreamKind::Stderr, StreamKind::Stdout),
                Written::Unknown => {
                    self.read_bulk(StreamKind::Stdout, kept, observer);
                    self.read_bulk(StreamKind::Stderr, kept, observer);
                    continue;
                }
            };
            if self.stream(other).mode == Mode::Bulk {
                self.read_bulk(other, kept, observer);
            }
            self.stream(other).in_a_row = 0;
            self.read_packets(kind, kept, observer);
        }
        self.announced += written.len();
        if self.announced > MAX_ANNOUNCED_WRITES {
            self.stdout.let_go();
            self.stderr.let_go();
        }
        for kind in [StreamKind::Stdout, StreamKind::Stderr] {
            if self.stream(kind).mode == Mode::Bulk {
                self.read_bulk(kind, kept, observer);
            }
        }
        !written.is_empty()
    }

    /// Reads both to their ends, once nobody writes any more.
    pub(crate) fn drain(&mut self, kept: &mut Kept, observer: &mut dyn Observer) {
        while self.read(kept, observer) {}
        for kind in [StreamKind::Stdout, StreamKind::Stderr] {
            while self.read_once(kind, kept, observer) > 0 {}
        }
    }

    /// Reads what one write left: one packet, or several if it was long.
    fn read_packets(&mut self, kind: StreamKind, kept: &mut Kept, observer: &mut dyn Observer) {
        while self.read_once(kind, kept, observer) == MAX_PACKET_BYTES {}
        let stream = self.stream(kind);
        stream.in_a_row += 1;
        if stream.in_a_row >= PACKETS_BEFORE_BULK {
            stream.let_go();
        }
    }

    /// Reads what is there, but not for ever: a program may write as fast as we read.
    fn read_bulk(&mut self, kind: StreamKind, kept: &mut Kept, observer: &mut dyn Observer) {
        const AT_MOST: usize = 16;
        for _ in 0..AT_MOST {
            if self.read_once(kind, kept, observer) == 0 {
                return;
            }
        }
    }

    fn read_once(
        &mut self,
        kind: StreamKind,
        kept: &mut Kept,
        observer: &mut dyn Observer,
    ) -> usize {
        let reader = match kind {
            StreamKind::Stdout => &self.stdout.reader,
            StreamKind::Stderr => &self.stderr.reader,
        };
        // Nothing there, and interrupted: both are tried again when the pipe is ready.
        let count = rustix::io::read(reader, &mut self.buffer[..]).unwrap_or(0);
        let taken = kept.take(kind, &self.buffer[..count]);
        if taken > 0 {
            observer.output(kind, &self.buffer[..taken]);
        }
        count
    }

    fn stream(&mut self, kind: StreamKind) -> &mut Stream {
        match kind {
            StreamKind::Stdout => &mut self.stdout,
            StreamKind::Stderr => &mut self.stderr,
        }
    }
}

impl Stream {
    /// From now on it is read in bulk, and its writes are no longer announced.
    fn let_go(&mut self) {
        // A stream that cannot be let go is read on as before.
        if self.mode == Mode::Packets
            && WriteOrder::let_go(self.reader.as_fd(), self.writer.as_fd()).is_ok()
        {
            self.mode = Mode::Bulk;
        }
    }

    fn open() -> Result<Self, Errno> {
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::DIRECT)?;
        // Only our end: the program must find its own in the usual blocking mode.
        rustix::io::ioctl_fionbio(&reader, true)?;
        // A write that has to wait for room is announced twice, which blurs the order: so there is room
        // for as many packets as are read one by one. Where a user may not have that much, the order of
        // a long burst is less exact, and nothing else changes.
        let _ = fcntl_setpipe_size(&reader, PACKETS_BEFORE_BULK * MAX_PACKET_BYTES);
        Ok(Self { reader, writer, mode: Mode::Packets, in_a_row: 0 })
    }
}

impl Kept {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, ..Self::default() }
    }

    /// Keeps what fits and says how much that was.
    pub(crate) fn take(&mut self, kind: StreamKind, bytes: &[u8]) -> usize {
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
