//! The two pipes to and from an agent.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use sandbox_core::Stdin;
use sandbox_protocol::agent::AgentRequest;
use sandbox_protocol::frame;

const BUFFER_BYTES: usize = 64 * 1024;
/// Maximum time for an agent to read more of a request. It does nothing else meanwhile, so only a
/// stopped agent takes this long.
const SEND_TIMEOUT: Duration = Duration::from_secs(30);

/// The connection to one agent.
pub(crate) struct Channel {
    input: Arc<Mutex<File>>,
    output: File,
    /// An incomplete message.
    partial: Vec<u8>,
    piece: Vec<u8>,
    /// Maximum length of a message. The agent's own are short; a file is as long as the one that
    /// was requested.
    pub(crate) max_message_bytes: usize,
}

/// Sends signals to the program of a channel.
pub(crate) struct SignalSender(Arc<Mutex<File>>);

/// The result of a read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Received {
    /// A message, to be decoded as an [`AgentEvent`](sandbox_protocol::agent::AgentEvent).
    Message(Vec<u8>),
    /// No complete message yet.
    Nothing,
    /// The agent has exited.
    End,
}

impl Channel {
    /// `input` is the agent's standard input, and `output` its standard output.
    pub(crate) fn new(input: OwnedFd, output: OwnedFd) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&input, true)?;
        rustix::io::ioctl_fionbio(&output, true)?;
        let input = Arc::new(Mutex::new(File::from(input)));
        Ok(Self {
            input,
            output: output.into(),
            partial: Vec::new(),
            piece: vec![0; BUFFER_BYTES],
            max_message_bytes: 2 * BUFFER_BYTES,
        })
    }

    /// Readable when there is data.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.output.as_fd()
    }

    /// Whether the agent is running, as far as this end knows, and sent nothing.
    pub(crate) fn is_quiet(&mut self) -> bool {
        matches!(self.recv(), Ok(Received::Nothing))
    }

    /// Receives the next message, if there is one.
    pub(crate) fn recv(&mut self) -> io::Result<Received> {
        loop {
            let split = frame::split(&self.partial, self.max_message_bytes);
            if let Some((message, length)) = split.map_err(io::Error::other)? {
                let message = Received::Message(message.to_vec());
                self.partial.drain(..length);
                return Ok(message);
            }
            match self.output.read(&mut self.piece) {
                Ok(0) => return Ok(Received::End),
                Ok(count) => self.partial.extend_from_slice(&self.piece[..count]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Ok(Received::Nothing);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Waits for a message.
    pub(crate) fn wait(&mut self, timeout: Duration) -> io::Result<Received> {
        let deadline = Instant::now() + timeout;
        loop {
            match self.recv()? {
                Received::Nothing => {}
                received => return Ok(received),
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(io::ErrorKind::TimedOut.into());
            }
            let left = Timespec {
                tv_sec: left.as_secs().cast_signed(),
                tv_nsec: left.subsec_nanos().into(),
            };
            match poll(&mut [PollFd::new(&self.output, PollFlags::IN)], Some(&left)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Sends a request. Fails with `TimedOut` if the agent does not read.
    pub(crate) fn send(&self, request: &AgentRequest<'_>) -> io::Result<()> {
        send(&self.input, request, Some(SEND_TIMEOUT))
    }

    /// Sends a request that is encoded already.
    pub(crate) fn send_frame(&self, frame: &[u8]) -> io::Result<()> {
        send_frame(&self.input, frame, Some(SEND_TIMEOUT))
    }

    /// Sends a signal to the program, unless the pipe is full of input that it does not read.
    pub(crate) fn signal(&self, signal: u8) {
        if let Ok(mut input) = self.input.try_lock() {
            // If the agent has exited, so has the program.
            if let Ok(frame) = frame::encode(&AgentRequest::Signal(signal)) {
                let _ = write_all(&mut input, &frame, Some(Duration::ZERO));
            }
        }
    }

    /// A way to send signals to the program while another thread receives.
    pub(crate) fn signals(&self) -> SignalSender {
        SignalSender(Arc::clone(&self.input))
    }

    /// Sends the program's standard input: immediately if it is short, otherwise on a thread that
    /// ends with the input or with the agent.
    pub(crate) fn feed(&self, stdin: &Stdin) -> io::Result<()> {
        let reader: Box<dyn io::Read + Send> = match stdin {
            Stdin::Empty => return self.send(&AgentRequest::StdinEnd),
            Stdin::Bytes(bytes) if bytes.len() <= BUFFER_BYTES / 2 => {
                self.send(&AgentRequest::Stdin(bytes))?;
                return self.send(&AgentRequest::StdinEnd);
            }
            Stdin::Bytes(bytes) => Box::new(io::Cursor::new(bytes.clone())),
            Stdin::Reader(reader) => {
                let reader = reader.lock().unwrap_or_else(PoisonError::into_inner).take();
                reader.ok_or_else(|| io::Error::other("it was already read by another stage"))?
            }
        };
        let input = Arc::clone(&self.input);
        let thread = std::thread::Builder::new().name("sandbox-stdin".to_owned());
        thread.spawn(move || pump(reader, &input)).map(drop)
    }
}

impl SignalSender {
    pub(crate) fn send(&self, signal: u8) -> io::Result<()> {
        send(&self.0, &AgentRequest::Signal(signal), Some(SEND_TIMEOUT))
    }
}

fn pump(mut reader: Box<dyn io::Read + Send>, input: &Mutex<File>) {
    let mut piece = vec![0; BUFFER_BYTES];
    loop {
        let sent = match reader.read(&mut piece) {
            Ok(0) => {
                let _ = send(input, &AgentRequest::StdinEnd, None);
                return;
            }
            Ok(count) => send(input, &AgentRequest::Stdin(&piece[..count]), None),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
            Err(_) => return,
        };
        if sent.is_err() {
            return;
        }
    }
}

fn send(
    input: &Mutex<File>,
    request: &AgentRequest<'_>,
    timeout: Option<Duration>,
) -> io::Result<()> {
    send_frame(input, &frame::encode(request).map_err(io::Error::other)?, timeout)
}

fn send_frame(input: &Mutex<File>, frame: &[u8], timeout: Option<Duration>) -> io::Result<()> {
    write_all(&mut input.lock().unwrap_or_else(PoisonError::into_inner), frame, timeout)
}

/// Writes to a non-blocking pipe. The timeout applies to each part that the reader accepts.
fn write_all(input: &mut File, mut rest: &[u8], timeout: Option<Duration>) -> io::Result<()> {
    let timeout = timeout.map(|timeout| Timespec {
        tv_sec: timeout.as_secs().cast_signed(),
        tv_nsec: timeout.subsec_nanos().into(),
    });
    while !rest.is_empty() {
        match input.write(rest) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => rest = &rest[count..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                match poll(&mut [PollFd::new(&*input, PollFlags::OUT)], timeout.as_ref()) {
                    Ok(0) => return Err(io::ErrorKind::TimedOut.into()),
                    Ok(_) | Err(Errno::INTR) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use rustix::pipe::{PipeFlags, pipe_with};

    use super::*;

    fn channel() -> (Channel, File) {
        let (_, input) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        let (output, writer) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        (Channel::new(input, output).unwrap(), writer.into())
    }

    #[test]
    fn messages_are_put_together_from_pieces() {
        let (mut channel, mut agent) = channel();
        assert_eq!(channel.recv().unwrap(), Received::Nothing);
        agent.write_all(&frame::header(3).unwrap()).unwrap();
        agent.write_all(b"ab").unwrap();
        assert_eq!(channel.recv().unwrap(), Received::Nothing);
        agent.write_all(b"c").unwrap();
        agent.write_all(&frame::header(0).unwrap()).unwrap();
        assert_eq!(channel.recv().unwrap(), Received::Message(b"abc".to_vec()));
        assert_eq!(channel.recv().unwrap(), Received::Message(Vec::new()));
        drop(agent);
        assert_eq!(channel.recv().unwrap(), Received::End);
    }

    #[test]
    fn an_agent_that_does_not_read_is_not_waited_for() {
        let (reader, input) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).unwrap();
        let mut input = File::from(input);
        let short = Some(Duration::from_millis(20));
        let error = write_all(&mut input, &vec![0; 1 << 20], short).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        drop(reader);
        let error = write_all(&mut input, &[0; 1], short).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    }

    #[test]
    fn a_message_that_is_too_long_is_not_waited_for() {
        let (mut channel, mut agent) = channel();
        agent.write_all(&frame::header(1 << 20).unwrap()).unwrap();
        assert!(channel.recv().is_err());
    }
}
