//! Supervising the program: its streams, its end, and the end of everything it started.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::{Duration, Instant};

use sandbox_protocol::agent::{AgentEvent, AgentExit, AgentRequest};
use sandbox_protocol::notice::StepFailure;
use sandbox_protocol::{Message as _, frame};

use crate::channel::{AtStep as _, send, unexpected};
use crate::deny::{DenyListener, DenyRules};
use crate::io_counters::IoCounters;
use crate::socket;
use crate::spawn::{self, Program};
use crate::sys::{self, ExitedChild, POLLIN, POLLOUT, POLLRDHUP, PollFd, SIGKILL};
use crate::writes::{self, Write};

/// Input that the program does not read is buffered up to this size; then the agent stops reading.
const MAX_BUFFERED_INPUT: usize = 256 * 1024;
const CHUNK_BYTES: usize = 64 * 1024;
/// After this many writes their order is given up: signals are kept in a queue that other processes of the user share.
const MAX_ORDERED_WRITES: usize = 20_000;
/// A longer write arrives as packets of this size and a rest.
const MAX_PACKET_BYTES: usize = 4096;
/// Every process but this one.
const ALL: i32 = -1;
/// Maximum time for everything that a program started to end. What has not ended by then forks faster than it is killed.
const KILL_TIMEOUT: Duration = Duration::from_secs(2);

/// Where the handler of SIGCHLD writes.
static SIGCHLD_PIPE: AtomicI32 = AtomicI32::new(-1);

/// What ends with the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Descendants {
    /// Every other process in the container.
    All,
    /// The descendants of this process, which is their parent when they lose theirs.
    Own,
}

struct Supervisor<'a> {
    program: i32,
    descendants: Descendants,
    io_counters: IoCounters,
    started: Instant,
    stdin: Option<File>,
    /// Standard output and standard error.
    streams: [Option<File>; 2],
    /// Reports the order of writes to the streams, until there were too many.
    write_order: Option<OwnedFd>,
    ordered_writes: usize,
    /// Input that the program has not read yet.
    buffered_input: VecDeque<u8>,
    /// Bytes from the supervisor that are not a whole frame yet.
    received: Vec<u8>,
    input_ended: bool,
    deny: Option<DenyListener>,
    input: &'a mut File,
    output: &'a mut File,
    exit: Option<ProgramExit>,
    /// Sums over all children.
    used: ExitedChild,
}

#[derive(Clone, Copy)]
struct ProgramExit {
    wait_status: i32,
    wall_nanos: u64,
}

impl ProgramExit {
    /// The status comes with the usage, when the program is reaped.
    fn now(started: Instant) -> Self {
        let wall_nanos = u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX);
        Self { wait_status: 0, wall_nanos }
    }
}

/// Runs the program and reports its end. False without a report: the supervisor went away, or something that the program
/// started cannot be killed. The end of the connection without a report makes the supervisor kill the container.
pub(crate) fn run(
    program: &Program,
    deny_rules: Option<DenyRules>,
    descendants: Descendants,
    io_counters: IoCounters,
    input: &mut File,
    output: &mut File,
) -> Result<bool, StepFailure> {
    let sigchld = open_sigchld_pipe().at("handle SIGCHLD")?;
    // The program may open its streams again by name, so they belong to its user.
    program.user.act_as_program().at("switch to the program's user")?;
    let (stdin, to_stdin) = sys::pipe().at("create a pipe")?;
    let ((stdout, to_stdout), (stderr, to_stderr), write_order) = open_output_pipes()?;
    program.user.act_as_agent().at("switch back to the agent's user")?;
    let (ours, theirs) = socket::pair().at("create a socket")?;
    send(output, &AgentEvent::Started).at("report that the program starts")?;
    let started = Instant::now();
    let process = spawn::start(program, [&stdin, &to_stdout, &to_stderr], &theirs);
    let process = process.at("fork the program's process")?;
    drop((stdin, to_stdout, to_stderr, theirs));
    let listener = spawn::wait_for_exec(&ours)?;
    for fd in [&to_stdin, &stdout, &stderr] {
        sys::set_nonblocking(fd).at("set up a stream")?;
    }
    let mut supervisor = Supervisor {
        program: process,
        descendants,
        io_counters,
        started,
        stdin: Some(to_stdin.into()),
        streams: [Some(stdout.into()), Some(stderr.into())],
        write_order,
        ordered_writes: 0,
        buffered_input: VecDeque::new(),
        received: Vec::new(),
        input_ended: false,
        deny: listener.zip(deny_rules).map(|(listener, rules)| DenyListener::new(listener, rules)),
        input,
        output,
        exit: None,
        used: ExitedChild::default(),
    };
    let watched = supervisor.watch(&sigchld).at("supervise the program");
    // Also after an error: nothing may be left running. What cannot be killed is not reported as ended.
    if supervisor.kill_descendants().is_err() {
        return Ok(false);
    }
    let is_supervised = watched?;
    let reported = supervisor.finish().at("report the program's end");
    // A supervisor that wants the program to end may have closed its end for requests only.
    if is_supervised { reported.map(|()| true) } else { Ok(false) }
}

type Pipe = (OwnedFd, OwnedFd);

/// Pipes for the program's output, and the queue that tells the order of writes to them. A kernel without packet mode does
/// not keep writes apart, so there is no order to keep.
fn open_output_pipes() -> Result<(Pipe, Pipe, Option<OwnedFd>), StepFailure> {
    let pipes = sys::packet_pipe().and_then(|stdout| Ok((stdout, sys::packet_pipe()?)));
    match pipes {
        Ok((stdout, stderr)) => {
            let write_order = writes::watch([&stdout.0, &stderr.0]);
            Ok((stdout, stderr, Some(write_order.at("watch the program's output")?)))
        }
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
            let pipe = || sys::pipe().at("create a pipe");
            Ok((pipe()?, pipe()?, None))
        }
        Err(error) => Err(error).at("create a pipe"),
    }
}

/// A pipe that becomes readable when a child ends.
fn open_sigchld_pipe() -> io::Result<OwnedFd> {
    extern "C" fn wake(_: i32) {
        sys::write_byte(SIGCHLD_PIPE.load(Ordering::Relaxed));
    }
    let (reader, writer) = sys::pipe()?;
    sys::set_nonblocking(&reader)?;
    sys::set_nonblocking(&writer)?;
    SIGCHLD_PIPE.store(writer.as_raw_fd(), Ordering::Relaxed);
    // It stays open for as long as the handler may run.
    std::mem::forget(writer);
    // SAFETY: the handler loads an atomic and writes to a pipe; both are async-signal-safe.
    unsafe { sys::handle_sigchld(wake) }?;
    Ok(reader)
}

impl Supervisor<'_> {
    /// Handles events until the program has ended. False if the supervisor process is gone.
    fn watch(&mut self, sigchld: &OwnedFd) -> io::Result<bool> {
        while self.exit.is_none() {
            if !self.handle_events(sigchld)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Waits for events and handles them. False if the supervisor process is gone.
    fn handle_events(&mut self, sigchld: &OwnedFd) -> io::Result<bool> {
        let entry = |fd: Option<i32>, events| PollFd { fd: fd.unwrap_or(-1), events, revents: 0 };
        let has_room = self.buffered_input.len() < MAX_BUFFERED_INPUT;
        let writes_to = self.stdin.as_ref().filter(|_| !self.buffered_input.is_empty());
        let mut fds = [
            entry(Some(sigchld.as_raw_fd()), POLLIN),
            entry(Some(self.input.as_raw_fd()), if has_room { POLLIN } else { POLLRDHUP }),
            entry(writes_to.map(AsRawFd::as_raw_fd), POLLOUT),
            entry(self.polled_stream(0), POLLIN),
            entry(self.polled_stream(1), POLLIN),
            entry(self.deny.as_ref().map(|deny| deny.fd.as_raw_fd()), POLLIN),
            entry(self.write_order.as_ref().map(AsRawFd::as_raw_fd), POLLIN),
        ];
        sys::poll(&mut fds)?;
        let [sigchld_ready, input, stdin, stdout, stderr, deny, write_order] =
            fds.map(|fd| fd.revents);
        if write_order != 0 {
            self.forward_in_order()?;
        }
        for (stream, revents) in [stdout, stderr].into_iter().enumerate() {
            if revents != 0 {
                self.forward(stream)?;
            }
        }
        if deny != 0
            && let Some(listener) = &mut self.deny
        {
            if deny & POLLIN == 0 {
                // No process is left under the filter.
                self.deny = None;
            } else {
                listener.answer(self.output)?;
            }
        }
        // Without room, only the end of the input is waited for.
        if input != 0 && !(has_room && self.receive()?) {
            return Ok(false);
        }
        if stdin != 0 {
            self.feed();
        }
        if sigchld_ready != 0 {
            // The handler may have written more than once.
            let _ = File::from(sigchld.try_clone()?).read(&mut [0; 64]);
            self.reap();
        }
        Ok(true)
    }

    /// The descriptor of a stream, if it is polled itself and not through the order of writes.
    fn polled_stream(&self, stream: usize) -> Option<i32> {
        let reader = self.streams[stream].as_ref().filter(|_| self.write_order.is_none());
        reader.map(AsRawFd::as_raw_fd)
    }

    /// Forwards output in the order of the writes. False if there was no write.
    fn forward_in_order(&mut self) -> io::Result<bool> {
        let Some(queue) = &self.write_order else { return Ok(false) };
        let writes = writes::take(queue);
        self.ordered_writes += writes.len();
        for write in &writes {
            for stream in [0, 1] {
                let fd = self.streams[stream].as_ref().map(AsRawFd::as_raw_fd);
                match write {
                    // A long write is several packets.
                    Write::To(written) if fd == Some(*written) => {
                        while self.forward(stream)? == MAX_PACKET_BYTES {}
                    }
                    Write::To(_) => {}
                    Write::Unknown => while self.forward(stream)? > 0 {},
                }
            }
        }
        if self.ordered_writes > MAX_ORDERED_WRITES {
            self.streams.iter().flatten().for_each(writes::unwatch);
            self.write_order = None;
        }
        Ok(!writes.is_empty())
    }

    /// Forwards what one read returns, and returns its length.
    fn forward(&mut self, stream: usize) -> io::Result<usize> {
        let Some(reader) = &mut self.streams[stream] else { return Ok(0) };
        let mut chunk = vec![0; CHUNK_BYTES];
        match reader.read(&mut chunk) {
            Ok(0) => {
                self.streams[stream] = None;
                Ok(0)
            }
            Ok(count) => {
                let event = [AgentEvent::Stdout, AgentEvent::Stderr][stream](&chunk[..count]);
                send(self.output, &event).map(|()| count)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
            Err(error) => Err(error),
        }
    }

    /// Handles requests. False if the supervisor process is gone.
    fn receive(&mut self) -> io::Result<bool> {
        let mut chunk = vec![0; CHUNK_BYTES];
        let count = self.input.read(&mut chunk)?;
        if count == 0 {
            return Ok(false);
        }
        self.received.extend_from_slice(&chunk[..count]);
        while let Some((request, length)) =
            frame::split(&self.received, frame::MAX_FRAME_BYTES).map_err(io::Error::other)?
        {
            match AgentRequest::decode(request) {
                Ok(AgentRequest::Stdin(bytes)) => self.buffered_input.extend(bytes),
                Ok(AgentRequest::StdinEnd) => self.input_ended = true,
                Ok(AgentRequest::Signal(signal)) => sys::kill(-self.program, signal.into()),
                _ => return Err(unexpected()),
            }
            self.received.drain(..length);
        }
        self.feed();
        Ok(true)
    }

    /// Writes buffered input to the program, as much as it takes.
    fn feed(&mut self) {
        if let Some(stdin) = &mut self.stdin {
            while !self.buffered_input.is_empty() {
                match stdin.write(self.buffered_input.as_slices().0) {
                    Ok(count) => drop(self.buffered_input.drain(..count)),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                    // The program closed its standard input.
                    Err(_) => {
                        self.stdin = None;
                        self.buffered_input.clear();
                        return;
                    }
                }
            }
            if self.input_ended {
                self.stdin = None;
            }
        } else {
            self.buffered_input.clear();
        }
    }

    fn reap(&mut self) {
        if sys::has_exited(self.program) {
            self.exit = Some(ProgramExit::now(self.started));
        }
        while let Ok(Some(child)) = self.wait(false) {
            self.count(child);
        }
    }

    fn wait(&mut self, blocking: bool) -> io::Result<Option<ExitedChild>> {
        let before = self.io_counters.sample();
        let child = sys::reap(blocking)?;
        if child.is_some() {
            self.io_counters.add_since(&before);
        }
        Ok(child)
    }

    fn count(&mut self, child: ExitedChild) {
        self.used.user_micros += child.user_micros;
        self.used.system_micros += child.system_micros;
        self.used.max_rss_kib = self.used.max_rss_kib.max(child.max_rss_kib);
        if let Some(exit) = self.exit.as_mut().filter(|_| child.process == self.program) {
            exit.wait_status = child.wait_status;
        }
    }

    /// Kills what ends with the program, and reaps it.
    fn kill_descendants(&mut self) -> io::Result<()> {
        let deadline = Instant::now() + KILL_TIMEOUT;
        self.exit.get_or_insert_with(|| ProgramExit::now(self.started));
        self.kill_once()?;
        while let Ok(child) = self.wait(true) {
            if let Some(child) = child {
                self.count(child);
            }
            if self.descendants == Descendants::Own && Instant::now() >= deadline {
                return Err(io::ErrorKind::TimedOut.into());
            }
            self.kill_once()?;
        }
        Ok(())
    }

    fn kill_once(&self) -> io::Result<()> {
        match self.descendants {
            Descendants::All => sys::kill(ALL, SIGKILL),
            // Their children are this process's own once they have ended.
            Descendants::Own => {
                sys::children()?.into_iter().for_each(|child| sys::kill(child, SIGKILL));
            }
        }
        Ok(())
    }

    /// Forwards the last output, and reports the end.
    fn finish(&mut self) -> io::Result<()> {
        while self.forward_in_order()? {}
        for stream in [0, 1] {
            while self.forward(stream)? > 0 {}
        }
        let Some(ProgramExit { wait_status, wall_nanos }) = self.exit else { return Ok(()) };
        let exit = AgentExit {
            wait_status,
            wall_nanos,
            user_micros: self.used.user_micros,
            system_micros: self.used.system_micros,
            max_rss_kib: self.used.max_rss_kib,
            read_bytes: self.io_counters.read_bytes,
            written_bytes: self.io_counters.written_bytes,
        };
        send(self.output, &AgentEvent::Exited(exit))
    }
}
