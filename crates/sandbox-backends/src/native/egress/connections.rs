//! A connection from the sandbox, and the connection to the target that the supervisor opens for
//! it. Bytes are relayed both ways.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::sockopt::{set_socket_linger, set_tcp_nodelay, socket_error};
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with};
use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice};

use super::audit::Target;

/// Maximum time to connect to the target.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);
/// Maximum number of bytes relayed before other connections are served.
const MAX_BYTES_PER_TURN: u64 = 2 << 20;
/// A connection that transfers more than this is relayed through a pipe with `splice`.
const MAX_BYTES_WITHOUT_PIPE: u64 = 1 << 20;
const WITHOUT_WAITING: SpliceFlags = SpliceFlags::MOVE.union(SpliceFlags::NONBLOCK);
/// Maximum number of unsent bytes in memory for each direction; there may be thousands of
/// connections.
pub(super) const BUFFER_BYTES: usize = 16 * 1024;
/// Capacity of a pipe.
const PIPE_BYTES: usize = 256 * 1024;

/// Both sockets of a connection.
pub(super) struct Connection {
    inside: TcpStream,
    outside: TcpStream,
    /// Deadline for connecting; `None` once connected.
    connecting: Option<Instant>,
    out: Direction,
    back: Direction,
    pub(super) target: Target,
}

/// One direction of a connection.
#[derive(Default)]
struct Direction {
    /// Bytes that were read and not yet written.
    rest: Vec<u8>,
    start: usize,
    is_at_end: bool,
    is_shut_down: bool,
    carried: u64,
    /// For bulk transfer through the kernel.
    pipe: Option<Pipe>,
}

/// A pipe between two sockets.
struct Pipe {
    reader: OwnedFd,
    writer: OwnedFd,
    /// Bytes in the pipe.
    filled: usize,
}

/// State of a connection after relaying.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum State {
    /// It waits for one of its sockets.
    Waits,
    /// It could continue immediately.
    HasMore,
    /// Both directions have ended.
    Over,
    /// The target cannot be reached.
    Unreachable(String),
    /// One side reset the connection.
    Broken,
    /// The execution's limit on bytes is exceeded.
    LimitReached,
}

/// What all connections of an execution may still use.
pub(super) struct TrafficBudget {
    /// Bytes to receive.
    pub(super) bytes_in: u64,
    /// Bytes to send.
    pub(super) bytes_out: u64,
    /// Pipes, which use kernel memory.
    pub(super) pipes: usize,
}

impl Connection {
    /// Starts to connect to the target.
    pub(super) fn begin(inside: TcpStream, target: Target) -> Result<Self, (TcpStream, Errno)> {
        match begin_to_connect(SocketAddr::new(target.address, target.port)) {
            Ok(outside) => {
                inside.set_nonblocking(true).ok();
                // Small writes are passed on without delay.
                let _ = set_tcp_nodelay(&inside, true);
                let connecting = Some(Instant::now() + CONNECT_TIMEOUT);
                let (out, back) = (Direction::default(), Direction::default());
                Ok(Self { inside, outside, connecting, out, back, target })
            }
            Err(error) => Err((inside, error)),
        }
    }

    /// The inner and the outer socket.
    pub(super) fn ends(&self) -> [BorrowedFd<'_>; 2] {
        [self.inside.as_fd(), self.outside.as_fd()]
    }

    /// Whether connecting takes too long.
    pub(super) fn is_late(&self, now: Instant) -> bool {
        self.connecting.is_some_and(|until| until < now)
    }

    /// Number of pipes in use.
    pub(super) fn pipes(&self) -> usize {
        usize::from(self.out.pipe.is_some()) + usize::from(self.back.pipe.is_some())
    }

    /// Bytes received and sent so far.
    pub(super) fn carried(&self) -> (u64, u64) {
        (self.back.carried, self.out.carried)
    }

    /// Relays as much as possible without blocking.
    pub(super) fn relay(&mut self, buffer: &mut [u8], left: &mut TrafficBudget) -> State {
        if self.connecting.is_some() {
            match self.stands() {
                Ok(true) => self.connecting = None,
                Ok(false) => return State::Waits,
                Err(error) => return State::Unreachable(error.to_string()),
            }
        }
        self.out.use_pipe(&mut left.pipes);
        self.back.use_pipe(&mut left.pipes);
        let there = self.out.carry(&self.inside, &self.outside, buffer, &mut left.bytes_out);
        let back = self.back.carry(&self.outside, &self.inside, buffer, &mut left.bytes_in);
        match (there, back) {
            (Ok(_), Ok(_)) if self.out.is_shut_down && self.back.is_shut_down => State::Over,
            (Ok(false), Ok(false)) => State::Waits,
            (Ok(_), Ok(_)) => State::HasMore,
            (Err(error), _) | (_, Err(error)) if is_limit_reached(&error) => State::LimitReached,
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

    /// Closes both sockets with a reset.
    pub(super) fn reset(self) {
        reset(&self.inside);
        reset(&self.outside);
    }
}

/// Makes the next close of this socket send a reset.
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
    /// Switches to a pipe if much was transferred and one is available.
    fn use_pipe(&mut self, pipes: &mut usize) {
        if self.pipe.is_none() && self.carried > MAX_BYTES_WITHOUT_PIPE && *pipes > 0 {
            self.pipe = Pipe::new();
            *pipes -= usize::from(self.pipe.is_some());
        }
    }

    /// Reads and writes until one of them would block. True if it stopped to let other connections
    /// be served.
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
                if !self.is_shut_down {
                    self.is_shut_down = true;
                    // The other side may have closed already.
                    let _ = to.shutdown(Shutdown::Write);
                }
                return Ok(false);
            }
            if self.carried - begun > MAX_BYTES_PER_TURN {
                return Ok(true);
            }
            if let Some(pipe) = &mut self.pipe {
                match splice(from, None, &pipe.writer, None, PIPE_BYTES, WITHOUT_WAITING) {
                    Ok(0) => self.is_at_end = true,
                    Ok(count) => {
                        pipe.filled = count;
                        self.carried += count as u64;
                        *left = left.checked_sub(count as u64).ok_or(Errno::DQUOT)?;
                    }
                    // The pipe is empty, so the source has no data.
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
    /// `None` if no pipe is available; bytes then go through memory.
    fn new() -> Option<Self> {
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).ok()?;
        // Large enough for one read; a smaller pipe only takes more turns.
        let _ = fcntl_setpipe_size(&writer, PIPE_BYTES);
        Some(Self { reader, writer, filled: 0 })
    }
}

fn is_limit_reached(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::DQUOT.raw_os_error())
}

fn waits(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}
