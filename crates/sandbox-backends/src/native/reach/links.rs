//! A connection from inside and the one that was made for it out here, with bytes carried both ways.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::sockopt::{set_socket_linger, set_tcp_nodelay, socket_error};
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with};
use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice};

use super::journal::Place;

/// Until a place has answered.
const CONNECT_TIME: Duration = Duration::from_secs(20);
/// Carried in one go, before others have their turn.
const TURN: u64 = 2 << 20;
/// A connection that has carried no more than this needs no pipe.
const SMALL: u64 = 1 << 20;
const WITHOUT_WAITING: SpliceFlags = SpliceFlags::MOVE.union(SpliceFlags::NONBLOCK);
/// What is read at once, and waits in our memory if the other side does not take it: there may be thousands of these.
pub(super) const BUFFER: usize = 16 * 1024;
/// What a pipe holds.
const PIPE: usize = 256 * 1024;

/// Both ends.
pub(super) struct Link {
    inside: TcpStream,
    outside: TcpStream,
    /// Until when it has to stand, as long as it does not.
    connecting: Option<Instant>,
    out: Direction,
    back: Direction,
    pub(super) place: Place,
}

/// One way.
#[derive(Default)]
struct Direction {
    /// Read and not yet written.
    rest: Vec<u8>,
    start: usize,
    is_at_end: bool,
    has_said_so: bool,
    carried: u64,
    /// What is carried in bulk goes through here, and not through our memory.
    pipe: Option<Pipe>,
}

/// A pipe between two sockets, in the kernel.
struct Pipe {
    reader: OwnedFd,
    writer: OwnedFd,
    /// Bytes in it.
    filled: usize,
}

/// How far a link is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum State {
    /// It waits for one of its ends.
    Waits,
    /// It could go on at once.
    HasMore,
    /// Both sides have said all.
    Over,
    /// The place cannot be reached.
    Unreachable(String),
    /// One side broke off.
    Broken,
    /// No more bytes may be carried in this execution.
    Spent,
}

/// What may still be had in a whole execution.
pub(super) struct Allowance {
    /// Bytes that come in.
    pub(super) bytes_in: u64,
    /// Bytes that go out.
    pub(super) bytes_out: u64,
    /// Pipes, of which the kernel keeps the content.
    pub(super) pipes: usize,
}

impl Link {
    /// Begins to connect to where somebody inside wants to get.
    pub(super) fn begin(inside: TcpStream, place: Place) -> Result<Self, (TcpStream, Errno)> {
        match begin_to_connect(SocketAddr::new(place.address, place.port)) {
            Ok(outside) => {
                inside.set_nonblocking(true).ok();
                // What was sent in small pieces is handed on in small pieces.
                let _ = set_tcp_nodelay(&inside, true);
                let connecting = Some(Instant::now() + CONNECT_TIME);
                let (out, back) = (Direction::default(), Direction::default());
                Ok(Self { inside, outside, connecting, out, back, place })
            }
            Err(error) => Err((inside, error)),
        }
    }

    /// Inside, outside.
    pub(super) fn ends(&self) -> [BorrowedFd<'_>; 2] {
        [self.inside.as_fd(), self.outside.as_fd()]
    }

    /// Whether it takes too long to reach the place.
    pub(super) fn is_late(&self, now: Instant) -> bool {
        self.connecting.is_some_and(|until| until < now)
    }

    /// How many pipes it has.
    pub(super) fn pipes(&self) -> usize {
        usize::from(self.out.pipe.is_some()) + usize::from(self.back.pipe.is_some())
    }

    /// Bytes that came in and went out so far.
    pub(super) fn carried(&self) -> (u64, u64) {
        (self.back.carried, self.out.carried)
    }

    /// Carries what can be carried without waiting.
    pub(super) fn go_on(&mut self, buffer: &mut [u8], left: &mut Allowance) -> State {
        if self.connecting.is_some() {
            match self.stands() {
                Ok(true) => self.connecting = None,
                Ok(false) => return State::Waits,
                Err(error) => return State::Unreachable(error.to_string()),
            }
        }
        self.out.widen(&mut left.pipes);
        self.back.widen(&mut left.pipes);
        let there = self.out.carry(&self.inside, &self.outside, buffer, &mut left.bytes_out);
        let back = self.back.carry(&self.outside, &self.inside, buffer, &mut left.bytes_in);
        match (there, back) {
            (Ok(_), Ok(_)) if self.out.has_said_so && self.back.has_said_so => State::Over,
            (Ok(false), Ok(false)) => State::Waits,
            (Ok(_), Ok(_)) => State::HasMore,
            (Err(error), _) | (_, Err(error)) if is_spent(&error) => State::Spent,
            _ => State::Broken,
        }
    }

    fn stands(&self) -> io::Result<bool> {
        match socket_error(&self.outside)? {
            Ok(()) => {}
            Err(error) => return Err(error.into()),
        }
        match self.outside.peer_addr() {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotConnected => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Ends it as if the other side had gone away.
    pub(super) fn reset(self) {
        reset(&self.inside);
        reset(&self.outside);
    }
}

/// What is closed after this is closed with a reset.
pub(super) fn reset(stream: &TcpStream) {
    let _ = set_socket_linger(stream, Some(Duration::ZERO));
}

fn begin_to_connect(address: SocketAddr) -> Result<TcpStream, Errno> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(family, SocketType::STREAM, flags, None)?;
    let _ = set_tcp_nodelay(&socket, true);
    match connect(&socket, &address) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(TcpStream::from(socket)),
        Err(error) => Err(error),
    }
}

impl Direction {
    /// Gets a pipe if it carries much and there is one to be had.
    fn widen(&mut self, pipes: &mut usize) {
        if self.pipe.is_none() && self.carried > SMALL && *pipes > 0 {
            self.pipe = Pipe::new();
            *pipes -= usize::from(self.pipe.is_some());
        }
    }

    /// Reads and writes until one of them would wait. True if it stopped for others' sake.
    fn carry(
        &mut self,
        mut from: &TcpStream,
        mut to: &TcpStream,
        buffer: &mut [u8],
        left: &mut u64,
    ) -> io::Result<bool> {
        let begun = self.carried;
        loop {
            if let Some(pipe) = self.pipe.as_mut().filter(|pipe| pipe.filled > 0) {
                match splice(&pipe.reader, None, to, None, pipe.filled, WITHOUT_WAITING) {
                    Ok(count) => pipe.filled -= count,
                    Err(Errno::AGAIN | Errno::INTR) => return Ok(false),
                    Err(error) => return Err(error.into()),
                }
                continue;
            }
            if self.start < self.rest.len() {
                match to.write(&self.rest[self.start..]) {
                    Ok(count) => self.start += count,
                    Err(error) if waits(&error) => return Ok(false),
                    Err(error) => return Err(error),
                }
                continue;
            }
            if self.is_at_end {
                if !self.has_said_so {
                    self.has_said_so = true;
                    // The other side may be gone already, and needs no telling then.
                    let _ = to.shutdown(Shutdown::Write);
                }
                return Ok(false);
            }
            if self.carried - begun > TURN {
                return Ok(true);
            }
            if let Some(pipe) = &mut self.pipe {
                match splice(from, None, &pipe.writer, None, PIPE, WITHOUT_WAITING) {
                    Ok(0) => self.is_at_end = true,
                    Ok(count) => {
                        pipe.filled = count;
                        self.carried += count as u64;
                        *left = left.checked_sub(count as u64).ok_or(Errno::DQUOT)?;
                    }
                    // It is empty, so it is the other side that has nothing.
                    Err(Errno::AGAIN | Errno::INTR) => return Ok(false),
                    Err(error) => return Err(error.into()),
                }
                continue;
            }
            let count = match from.read(buffer) {
                Ok(0) => {
                    self.is_at_end = true;
                    continue;
                }
                Ok(count) => count,
                Err(error) if waits(&error) => return Ok(false),
                Err(error) => return Err(error),
            };
            *left = left.checked_sub(count as u64).ok_or(Errno::DQUOT)?;
            self.carried += count as u64;
            let written = match to.write(&buffer[..count]) {
                Ok(written) => written,
                Err(error) if waits(&error) => 0,
                Err(error) => return Err(error),
            };
            self.rest.clear();
            self.start = 0;
            self.rest.extend_from_slice(&buffer[written..count]);
        }
    }
}

impl Pipe {
    /// Nothing if there is none to be had: bytes go through our memory then.
    fn new() -> Option<Self> {
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).ok()?;
        // As much as one read takes; with less there are only more turns.
        let _ = fcntl_setpipe_size(&writer, PIPE);
        Some(Self { reader, writer, filled: 0 })
    }
}

fn is_spent(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::DQUOT.raw_os_error())
}

fn waits(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}
