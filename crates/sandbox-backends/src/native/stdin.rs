//! The program's standard input: always a pipe that is created with the slot.
//!
//! The pipe exposes nothing of the host: bytes are written into it, and a reader is copied into it
//! rather than passed on.

use std::io::{Cursor, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Gid, Uid};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, fcntl_getpipe_size, pipe_with};
use sandbox_core::{BackendError, Stdin};

use crate::error::failed;

const BUFFER_BYTES: usize = 64 * 1024;

/// Both ends of the pipe, before the program starts.
pub(crate) struct Input {
    reader: OwnedFd,
    writer: OwnedFd,
}

/// Standard input to be written once the program may read it.
pub(crate) struct Feed {
    writer: OwnedFd,
    source: Source,
}

enum Source {
    Bytes(Vec<u8>),
    Reader(Box<dyn Read + Send>),
}

impl Input {
    pub(crate) fn open() -> Result<Self, Errno> {
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
        Ok(Self { reader, writer })
    }

    /// Makes the program's user its owner, so that the program can reopen it by name
    /// (`/dev/stdin`).
    pub(crate) fn give_to(&self, owner: u32) -> Result<(), Errno> {
        rustix::fs::fchown(&self.reader, Some(Uid::from_raw(owner)), Some(Gid::from_raw(owner)))
    }

    /// The program's end and the supervisor's end.
    pub(crate) fn ends(&self) -> (BorrowedFd<'_>, BorrowedFd<'_>) {
        (self.reader.as_fd(), self.writer.as_fd())
    }

    /// Takes the data to write. If there is none, the pipe is closed.
    pub(crate) fn prepare(self, stdin: &Stdin) -> Result<Option<Feed>, BackendError> {
        let source = match stdin {
            Stdin::Empty => return Ok(None),
            Stdin::Bytes(bytes) => Source::Bytes(bytes.clone()),
            Stdin::Reader(reader) => {
                let reader = reader.lock().ok().and_then(|mut reader| reader.take());
                Source::Reader(reader.ok_or_else(|| {
                    let reason = "the standard input was already read by another stage";
                    BackendError::Refused(reason.into())
                })?)
            }
        };
        Ok(Some(Feed { writer: self.writer, source }))
    }
}

impl Feed {
    /// Writes the data: immediately if it fits in the pipe, otherwise on a thread. The thread ends
    /// at the end of the input or when there is no reader; until then it may block in the caller's
    /// reader.
    pub(crate) fn begin(self) -> Result<(), BackendError> {
        let room = fcntl_getpipe_size(&self.writer).unwrap_or(0);
        let mut writer = std::fs::File::from(self.writer);
        let reader: Box<dyn Read + Send> = match self.source {
            Source::Bytes(bytes) if bytes.len() <= room => {
                // The program may have exited already.
                let _ = writer.write_all(&bytes);
                return Ok(());
            }
            Source::Bytes(bytes) => Box::new(Cursor::new(bytes)),
            Source::Reader(reader) => reader,
        };
        std::thread::Builder::new()
            .name("sandbox-stdin".to_owned())
            .spawn(move || pump(reader, writer))
            .map(|_| ())
            .map_err(|error| failed("start a thread for the input", error))
    }
}

fn pump(mut reader: Box<dyn Read + Send>, mut input: std::fs::File) {
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        match reader.read(&mut buffer) {
            Ok(0) => return,
            Ok(count) => {
                if input.write_all(&buffer[..count]).is_err() {
                    return;
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}
