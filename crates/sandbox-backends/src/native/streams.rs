//! The program's two output pipes, read in the order in which they are written.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Gid, Uid};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, fcntl_setpipe_size, pipe_with};
use sandbox_core::StreamKind;
use sandbox_linux::write_order::{WriteOrder, Written};

use crate::supervise::Supervision;

const BUFFER_BYTES: usize = 64 * 1024;

/// The two output pipes of a slot, created before the program is known.
pub(crate) struct Pipes {
    stdout: Stream,
    stderr: Stream,
}

/// The program's two output streams while it runs.
pub(crate) struct Streams {
    /// Declared first, so that it is dropped before the pipes that it watches.
    order: WriteOrder,
    stdout: Stream,
    stderr: Stream,
    buffer: Vec<u8>,
    /// Number of writes announced so far.
    announced: usize,
}

struct Stream {
    reader: OwnedFd,
    /// Kept open to change its mode. Therefore the end of a stream is not seen, and not waited for.
    writer: OwnedFd,
    mode: Mode,
    /// Packets since the last write to the other stream.
    in_a_row: usize,
}

/// How a stream is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// One write at a time, in the order in which both streams are written.
    Packets,
    /// As much as possible, for a stream that is written to repeatedly.
    Bulk,
}

/// After this many packets of one stream in a row, order no longer matters and reading them one by
/// one is too slow.
const PACKETS_BEFORE_BULK: usize = 256;
/// After this many writes both streams are read in bulk. Announcements are queued signals, and a
/// program that writes as fast as it can must not fill the queue that all processes of this user
/// share.
const MAX_ANNOUNCED_WRITES: usize = 20_000;
/// The kernel splits a longer write into packets of this size.
const MAX_PACKET_BYTES: usize = 4096;

impl Pipes {
    pub(crate) fn open() -> Result<Self, Errno> {
        Ok(Self { stdout: Stream::open()?, stderr: Stream::open()? })
    }

    /// Makes the program's user the owner of the pipes: a program may reopen its streams by name
    /// (`/dev/stdout`), which checks the owner.
    pub(crate) fn give_to(&self, owner: u32) -> Result<(), Errno> {
        let (user, group) = (Some(Uid::from_raw(owner)), Some(Gid::from_raw(owner)));
        rustix::fs::fchown(&self.stdout.writer, user, group)?;
        rustix::fs::fchown(&self.stderr.writer, user, group)
    }

    /// The program's ends: standard output and standard error.
    pub(crate) fn writers(&self) -> (BorrowedFd<'_>, BorrowedFd<'_>) {
        (self.stdout.writer.as_fd(), self.stderr.writer.as_fd())
    }

    /// The supervisor's ends.
    pub(crate) fn readers(&self) -> (BorrowedFd<'_>, BorrowedFd<'_>) {
        (self.stdout.reader.as_fd(), self.stderr.reader.as_fd())
    }
}

impl Streams {
    /// Starts to watch the pipes, from this thread.
    pub(crate) fn listen(Pipes { stdout, stderr }: Pipes) -> Result<Self, Errno> {
        let order = WriteOrder::new([stdout.reader.as_fd(), stderr.reader.as_fd()])?;
        Ok(Self { order, stdout, stderr, buffer: vec![0; BUFFER_BYTES], announced: 0 })
    }

    /// Descriptors to poll: when one of them is readable, call [`Streams::read`].
    pub(crate) fn watched(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let bulk =
            [&self.stdout, &self.stderr].into_iter().filter(|stream| stream.mode == Mode::Bulk);
        std::iter::once(self.order.fd()).chain(bulk.map(|stream| stream.reader.as_fd()))
    }

    /// Reads what is there, in order; false if no write was announced.
    pub(crate) fn read(&mut self, supervision: &mut Supervision<'_>) -> bool {
        let written = self.order.take();
        for what in &written {
            let (kind, other) = match what {
                Written::First => (StreamKind::Stdout, StreamKind::Stderr),
                Written::Second => (StreamKind::Stderr, StreamKind::Stdout),
                Written::Unknown => {
                    self.read_bulk(StreamKind::Stdout, supervision);
                    self.read_bulk(StreamKind::Stderr, supervision);
                    continue;
                }
            };
            if self.stream(other).mode == Mode::Bulk {
                self.read_bulk(other, supervision);
            }
            self.stream(other).in_a_row = 0;
            self.read_packets(kind, supervision);
        }
        self.announced += written.len();
        if self.announced > MAX_ANNOUNCED_WRITES {
            self.stdout.switch_to_bulk();
            self.stderr.switch_to_bulk();
        }
        for kind in [StreamKind::Stdout, StreamKind::Stderr] {
            if self.stream(kind).mode == Mode::Bulk {
                self.read_bulk(kind, supervision);
            }
        }
        !written.is_empty()
    }

    /// Reads both streams to their ends, after all writers are gone.
    pub(crate) fn drain(&mut self, supervision: &mut Supervision<'_>) {
        while self.read(supervision) {}
        for kind in [StreamKind::Stdout, StreamKind::Stderr] {
            while self.read_once(kind, supervision) > 0 {}
        }
    }

    /// Reads one write: one packet, or several if it was long.
    fn read_packets(&mut self, kind: StreamKind, supervision: &mut Supervision<'_>) {
        while self.read_once(kind, supervision) == MAX_PACKET_BYTES {}
        let stream = self.stream(kind);
        stream.in_a_row += 1;
        if stream.in_a_row >= PACKETS_BEFORE_BULK {
            stream.switch_to_bulk();
        }
    }

    /// Reads what is there, up to a bound: a program may write as fast as it is read.
    fn read_bulk(&mut self, kind: StreamKind, supervision: &mut Supervision<'_>) {
        const MAX_READS: usize = 16;
        for _ in 0..MAX_READS {
            if self.read_once(kind, supervision) == 0 {
                return;
            }
        }
    }

    fn read_once(&mut self, kind: StreamKind, supervision: &mut Supervision<'_>) -> usize {
        let reader = match kind {
            StreamKind::Stdout => &self.stdout.reader,
            StreamKind::Stderr => &self.stderr.reader,
        };
        // An empty pipe and an interrupted read are both retried when the pipe is readable.
        let count = rustix::io::read(reader, &mut self.buffer[..]).unwrap_or(0);
        supervision.output(kind, &self.buffer[..count]);
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
    /// Switches to bulk reading; writes are no longer announced.
    fn switch_to_bulk(&mut self) {
        // If it fails, the stream is read as before.
        if self.mode == Mode::Packets
            && WriteOrder::unwatch(self.reader.as_fd(), self.writer.as_fd()).is_ok()
        {
            self.mode = Mode::Bulk;
        }
    }

    fn open() -> Result<Self, Errno> {
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::DIRECT)?;
        // Only the supervisor's end: the program expects its own to block.
        rustix::io::ioctl_fionbio(&reader, true)?;
        // A write that blocks is announced twice, which blurs the order; so the pipe holds as many
        // packets as are read one by one. If the user may not have such a large pipe, the order of
        // a long burst is less exact.
        let _ = fcntl_setpipe_size(&reader, PACKETS_BEFORE_BULK * MAX_PACKET_BYTES);
        Ok(Self { reader, writer, mode: Mode::Packets, in_a_row: 0 })
    }
}
