//! Running the program: its streams, its end, and the end of everything it started.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Instant;

use crate::denied::{Answers, Denied};
use crate::frame::{HEAD, Packer, length_of, send, to_agent, to_supervisor};
use crate::moved::Moved;
use crate::system::{self, Gone, POLLIN, POLLOUT, PollFd, Program, SIGKILL};
use crate::{At as _, Failure};

/// So much input is kept for a program that does not read it.
const MOST_INPUT: usize = 256 * 1024;
const PIECE: usize = 64 * 1024;
/// After so many writes their order is no longer asked for.
const MOST_ANNOUNCED: usize = 20_000;
/// A longer write arrives as packets of this size and a rest.
const LARGEST_PACKET: usize = 4096;

/// Where the handler of SIGCHLD writes.
static WAKER: AtomicI32 = AtomicI32::new(-1);

struct Watch<'a> {
    program: i32,
    moved: Moved,
    begun: Instant,
    stdin: Option<File>,
    streams: [Option<File>; 2],
    /// Tells in which order they were written to, for as long as that is worth its price.
    order: Option<OwnedFd>,
    announced: usize,
    /// What the program has not read yet.
    waiting: VecDeque<u8>,
    /// What of the supervisor's messages has come.
    partial: Vec<u8>,
    input_is_over: bool,
    denied: Option<Denied>,
    input: &'a mut File,
    output: &'a mut File,
    end: Option<End>,
    used: Gone,
}

struct End {
    status: i32,
    nanos: u64,
}

/// Runs the program to its end and says how that was; false if the supervisor went away.
pub(crate) fn run(
    program: &Program,
    answers: Option<Answers>,
    moved: Moved,
    input: &mut File,
    output: &mut File,
) -> Result<bool, Failure> {
    let bell = listen_to_children().at("listen to the program's end")?;
    // They are the program's, which may open them again by name.
    program.user.act_as_program().at("become the program's user")?;
    let (stdin, to_stdin) = system::pipe().at("make a pipe")?;
    let ((stdout, to_stdout), (stderr, to_stderr), order) = output_streams()?;
    program.user.act_as_agent().at("become the agent's user")?;
    let (ours, theirs) = system::socket_pair().at("make a socket")?;
    send(output, to_supervisor::STARTED, &[]).at("say that the program starts")?;
    let begun = Instant::now();
    let started = system::start(program, [&stdin, &to_stdout, &to_stderr], &theirs);
    let process = started.at("make a process for the program")?;
    drop((stdin, to_stdout, to_stderr, theirs));
    let listener = hear_from_process(&ours)?;
    for descriptor in [&to_stdin, &stdout, &stderr] {
        system::do_not_block(descriptor).at("set up a stream")?;
    }
    let mut watch = Watch {
        program: process,
        moved,
        begun,
        stdin: Some(to_stdin.into()),
        streams: [Some(stdout.into()), Some(stderr.into())],
        order,
        announced: 0,
        waiting: VecDeque::new(),
        partial: Vec::new(),
        input_is_over: false,
        denied: listener.zip(answers).map(|(listener, answers)| Denied::new(listener, answers)),
        input,
        output,
        end: None,
        used: Gone::default(),
    };
    while watch.end.is_none() {
        if !watch.turn(&bell).at("watch the program")? {
            return Ok(false);
        }
    }
    watch.finish().at("tell the program's end").map(|()| true)
}

type Pipe = (OwnedFd, OwnedFd);

/// Pipes for what the program writes, and what tells in which order it wrote to them. Not every kernel keeps apart what
/// was written to a pipe; then there is nothing to put in order.
fn output_streams() -> Result<(Pipe, Pipe, Option<OwnedFd>), Failure> {
    let pipes = system::packet_pipe().and_then(|stdout| Ok((stdout, system::packet_pipe()?)));
    match pipes {
        Ok((stdout, stderr)) => {
            let order = system::listen_to_writes([&stdout.0, &stderr.0]);
            Ok((stdout, stderr, Some(order.at("listen to the program's output")?)))
        }
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
            let pipe = || system::pipe().at("make a pipe");
            Ok((pipe()?, pipe()?, None))
        }
        Err(error) => Err(error).at("make a pipe"),
    }
}

/// Hears what happens before the process is the program: the listener of its filter, and what went wrong.
fn hear_from_process(socket: &OwnedFd) -> Result<Option<OwnedFd>, Failure> {
    let mut listener = None;
    loop {
        let (text, descriptor) = system::receive(socket).at("hear from the program's process")?;
        listener = descriptor.or(listener);
        match text.split_first_chunk::<4>() {
            // It is the program now.
            None if text.is_empty() => return Ok(listener),
            None => {}
            Some((number, step)) => {
                let error = io::Error::from_raw_os_error(i32::from_le_bytes(*number));
                return Err(error).at(&String::from_utf8_lossy(step));
            }
        }
    }
}

fn listen_to_children() -> io::Result<OwnedFd> {
    extern "C" fn wake(_: i32) {
        let waker = WAKER.load(Ordering::Relaxed);
        system::write_byte(waker);
    }
    let (bell, waker) = system::pipe()?;
    system::do_not_block(&bell)?;
    system::do_not_block(&waker)?;
    WAKER.store(waker.as_raw_fd(), Ordering::Relaxed);
    // It stays open for as long as the agent lives.
    std::mem::forget(waker);
    system::on_child(wake)?;
    Ok(bell)
}

impl Watch<'_> {
    /// Waits for something and sees to it; false if the supervisor is gone.
    fn turn(&mut self, bell: &OwnedFd) -> io::Result<bool> {
        let entry = |descriptor: Option<i32>, events| PollFd {
            descriptor: descriptor.unwrap_or(-1),
            events,
            found: 0,
        };
        let hears = self.waiting.len() < MOST_INPUT;
        let writes = self.stdin.as_ref().filter(|_| !self.waiting.is_empty());
        let mut fds = [
            entry(Some(bell.as_raw_fd()), POLLIN),
            entry(hears.then(|| self.input.as_raw_fd()), POLLIN),
            entry(writes.map(|stdin| stdin.as_raw_fd()), POLLOUT),
            entry(self.polled(0), POLLIN),
            entry(self.polled(1), POLLIN),
            entry(self.denied.as_ref().map(|denied| denied.listener.as_raw_fd()), POLLIN),
            entry(self.order.as_ref().map(|order| order.as_raw_fd()), POLLIN),
        ];
        system::poll(&mut fds, -1)?;
        let is_ready: [bool; 7] = std::array::from_fn(|place| fds[place].found != 0);
        if is_ready[6] {
            self.pass_on_in_order()?;
        }
        for stream in [0, 1] {
            if is_ready[3 + stream] {
                self.pass_on(stream)?;
            }
        }
        if is_ready[5]
            && let Some(denied) = &mut self.denied
        {
            if fds[5].found & POLLIN == 0 {
                // Nobody is left whom the filter binds.
                self.denied = None;
            } else {
                denied.answer(self.output)?;
            }
        }
        if is_ready[1] && !self.hear()? {
            return Ok(false);
        }
        if is_ready[2] {
            self.feed();
        }
        if is_ready[0] {
            // What rang is of no interest, and it may ring again.
            let _ = File::from(bell.try_clone()?).read(&mut [0; 64]);
            self.reap();
        }
        Ok(true)
    }

    /// The stream, if it is looked at for itself.
    fn polled(&self, stream: usize) -> Option<i32> {
        let reader = self.streams[stream].as_ref().filter(|_| self.order.is_none());
        reader.map(|reader| reader.as_raw_fd())
    }

    /// Passes on what was written, write by write; false if nothing was announced.
    fn pass_on_in_order(&mut self) -> io::Result<bool> {
        let Some(order) = &self.order else { return Ok(false) };
        let written = system::written(order);
        self.announced += written.len();
        for descriptor in &written {
            for stream in [0, 1] {
                let own = self.streams[stream].as_ref().map(|stream| stream.as_raw_fd());
                if own == Some(*descriptor) {
                    // A long write is several packets.
                    while self.pass_on(stream)? == LARGEST_PACKET {}
                } else if *descriptor < 0 {
                    while self.pass_on(stream)? > 0 {}
                }
            }
        }
        if self.announced > MOST_ANNOUNCED {
            // Who writes so often has no order to lose, and announcements are kept in a queue that others share.
            self.streams.iter().flatten().for_each(system::let_go);
            self.order = None;
        }
        Ok(!written.is_empty())
    }

    /// Passes on what the program wrote, and says how much that was.
    fn pass_on(&mut self, stream: usize) -> io::Result<usize> {
        let Some(reader) = &mut self.streams[stream] else { return Ok(0) };
        let mut piece = vec![0; PIECE];
        match reader.read(&mut piece) {
            Ok(0) => {
                self.streams[stream] = None;
                Ok(0)
            }
            Ok(count) => {
                let kind = [to_supervisor::STDOUT, to_supervisor::STDERR][stream];
                send(self.output, kind, &piece[..count]).map(|()| count)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
            Err(error) => Err(error),
        }
    }

    /// Hears what the supervisor says; false if it is gone.
    fn hear(&mut self) -> io::Result<bool> {
        let mut piece = [0; PIECE];
        let count = self.input.read(&mut piece)?;
        if count == 0 {
            return Ok(false);
        }
        self.partial.extend_from_slice(&piece[..count]);
        while let Some((head, rest)) = self.partial.split_first_chunk::<HEAD>() {
            let length = length_of(*head).ok_or(io::ErrorKind::InvalidData)?;
            let Some(payload) = rest.get(..length) else { break };
            match head[0] {
                to_agent::INPUT => self.waiting.extend(payload),
                to_agent::INPUT_END => self.input_is_over = true,
                to_agent::SIGNAL => {
                    if let [signal] = payload {
                        system::kill(-self.program, (*signal).into());
                    }
                }
                _ => return Err(io::ErrorKind::InvalidData.into()),
            }
            self.partial.drain(..HEAD + length);
        }
        self.feed();
        Ok(true)
    }

    fn feed(&mut self) {
        if let Some(stdin) = &mut self.stdin {
            while !self.waiting.is_empty() {
                match stdin.write(self.waiting.as_slices().0) {
                    Ok(count) => drop(self.waiting.drain(..count)),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                    // Nobody reads it any more.
                    Err(_) => {
                        self.stdin = None;
                        self.waiting.clear();
                        return;
                    }
                }
            }
            if self.input_is_over {
                self.stdin = None;
            }
        } else {
            self.waiting.clear();
        }
    }

    fn reap(&mut self) {
        if let Some(status) = system::peek(self.program) {
            let nanos = u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
            self.end = Some(End { status, nanos });
        }
        while let Ok(Some(gone)) = self.wait(false) {
            self.count(gone);
        }
    }

    fn wait(&mut self, waits: bool) -> io::Result<Option<Gone>> {
        let before = self.moved.look();
        let gone = system::reap(waits)?;
        if gone.is_some() {
            self.moved.add_since(&before);
        }
        Ok(gone)
    }

    fn count(&mut self, gone: Gone) {
        self.used.user_micros += gone.user_micros;
        self.used.system_micros += gone.system_micros;
        self.used.largest_kib = self.used.largest_kib.max(gone.largest_kib);
        if let Some(end) = self.end.as_mut().filter(|_| gone.process == self.program) {
            end.status = gone.status;
        }
    }

    /// Ends whatever else runs here, reads the last output, and says how it was.
    fn finish(&mut self) -> io::Result<()> {
        system::kill(-1, SIGKILL);
        while let Ok(gone) = self.wait(true) {
            gone.into_iter().for_each(|gone| self.count(gone));
            system::kill(-1, SIGKILL);
        }
        while self.pass_on_in_order()? {}
        for stream in [0, 1] {
            while self.pass_on(stream)? > 0 {}
        }
        let Some(End { status, nanos }) = self.end else { return Ok(()) };
        let mut told = Packer::default();
        told.number(u64::from(status.unsigned_abs()))
            .number(nanos)
            .number(self.used.user_micros)
            .number(self.used.system_micros)
            .number(self.used.largest_kib)
            .number(self.moved.read)
            .number(self.moved.written);
        send(self.output, to_supervisor::EXITED, &told.0)
    }
}
