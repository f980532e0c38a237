use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// How long to wait for what.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timeouts {
    /// For a connection, and for a request to be taken.
    pub(super) send: Duration,
    /// For a whole answer, or the head of one that is read as it comes.
    pub(super) answer: Duration,
    /// For the next bytes of an answer that is read as it comes.
    pub(super) silence: Duration,
    /// Before something is tried for the second time; then twice as long each time.
    pub(super) pause: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            send: Duration::from_secs(10),
            answer: Duration::from_mins(1),
            // Servers break the silence more often than this to keep a stream alive.
            silence: Duration::from_secs(45),
            pause: Duration::from_millis(200),
        }
    }
}

/// A socket whose reads end, whatever the other side does.
#[derive(Debug)]
pub(super) struct TimedSocket {
    stream: TcpStream,
    silence: Duration,
    deadline: Option<Instant>,
}

impl TimedSocket {
    pub(super) fn new(stream: TcpStream, timeouts: Timeouts) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(timeouts.send))?;
        let deadline = Some(Instant::now() + timeouts.answer);
        Ok(Self { stream, silence: timeouts.silence, deadline })
    }

    /// From now on only silence ends it, not the clock.
    pub(super) fn without_deadline(&mut self) {
        self.deadline = None;
    }
}

impl Read for TimedSocket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let wait = match self.deadline {
            Some(deadline) => deadline.saturating_duration_since(Instant::now()),
            None => self.silence,
        };
        if wait.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.stream.set_read_timeout(Some(wait))?;
        self.stream.read(buffer).map_err(|error| match error.kind() {
            // What Linux says when the time of a blocking socket is up.
            io::ErrorKind::WouldBlock => io::ErrorKind::TimedOut.into(),
            _ => error,
        })
    }
}

impl Write for TimedSocket {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.stream.write(buffer)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}
