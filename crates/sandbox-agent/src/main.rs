//! The agent: process 1 of a container that another runtime built.
//!
//! It reads one [`Exec`](AgentRequest::Exec) request from its standard input, writes the files, starts the program behind
//! the system-call filter and resource limits that the native backend uses too, forwards its output, reaps, and reports on
//! its standard output how the program ended and which files it left. When its input ends, the supervisor is gone; the
//! agent exits, and the kernel kills everything else in the container.
//!
//! It has one thread, needs no library inside the container, and cannot be traced by the program.

mod deny;
mod exec;
mod io_counters;
mod landlock;
mod seccomp;
mod socket;
mod spawn;
mod supervise;
mod sys;
mod user;
mod workdir;
mod writes;

use std::fs::File;
use std::io::{self, Read as _};
use std::mem::ManuallyDrop;
use std::os::fd::FromRawFd as _;
use std::path::Path;
use std::process::ExitCode;

use sandbox_protocol::agent::{AgentEvent, AgentRequest};
use sandbox_protocol::notice::StepFailure;
use sandbox_protocol::{Message as _, frame};

/// Where the program's files are.
const WORK: &str = "/work";

fn main() -> ExitCode {
    // SAFETY: from_raw_fd demands an open descriptor that nothing else owns. A container runtime starts process 1 with
    // its standard streams open; Rust's own handles to them are not used here.
    let mut input = ManuallyDrop::new(unsafe { File::from_raw_fd(0) });
    // SAFETY: as above. Neither is closed, because `ManuallyDrop` never drops them.
    let mut output = ManuallyDrop::new(unsafe { File::from_raw_fd(1) });
    match serve(&mut input, &mut output) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            // If this cannot be sent, the supervisor is gone.
            let _ = send(&mut *output, &AgentEvent::Failed(failure));
            ExitCode::FAILURE
        }
    }
}

/// Names the step that an operation belongs to.
trait AtStep<T> {
    fn at(self, step: &str) -> Result<T, StepFailure>;
}

impl<T> AtStep<T> for io::Result<T> {
    fn at(self, step: &str) -> Result<T, StepFailure> {
        self.map_err(|error| StepFailure {
            step: step.to_owned(),
            errno: error.raw_os_error().unwrap_or(0),
        })
    }
}

/// Sends one event to the supervisor.
fn send(output: &mut impl io::Write, event: &AgentEvent<'_>) -> io::Result<()> {
    output.write_all(&frame::encode(event).map_err(io::Error::other)?)
}

/// Receives one request, still encoded, and blocks until it is complete. None at the end of the stream.
fn receive(input: &mut impl io::Read) -> io::Result<Option<Vec<u8>>> {
    const INITIAL_CAPACITY: usize = 64 * 1024;
    let mut header = [0; frame::HEADER_BYTES];
    match input.read_exact(&mut header) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        result => result?,
    }
    let length = frame::length(header, frame::MAX_FRAME_BYTES).map_err(io::Error::other)?;
    let mut request = Vec::with_capacity(length.min(INITIAL_CAPACITY));
    input.take(length as u64).read_to_end(&mut request)?;
    if request.len() < length {
        Err(io::ErrorKind::UnexpectedEof.into())
    } else {
        Ok(Some(request))
    }
}

/// An error for a message from the supervisor that does not belong here.
fn unexpected() -> io::Error {
    io::ErrorKind::InvalidData.into()
}

fn serve(input: &mut File, output: &mut File) -> Result<(), StepFailure> {
    // Opened first: an undumpable process cannot open it.
    let io_counters = io_counters::IoCounters::open();
    sys::set_undumpable().at("make the agent untraceable")?;
    send(output, &AgentEvent::Ready).at("report that the agent is ready")?;
    let received = receive(input).at("receive the request")?;
    let Some(request) = received else { return Ok(()) };
    let Ok(AgentRequest::Exec(request)) = AgentRequest::decode(&request) else {
        return Err(unexpected()).at("decode the request");
    };
    let user = user::User::new(request.program_user);
    user.act_as_program().at("switch to the program's user")?;
    workdir::write_files(Path::new(WORK), &request)?;
    workdir::link_trees(&request)?;
    user.act_as_agent().at("switch back to the agent's user")?;
    let (program, deny_rules) = exec::prepare(&request, user).at("prepare the program")?;
    drop(request);
    if !supervise::run(&program, deny_rules, io_counters, input, output)? {
        return Ok(());
    }
    user.act_as_program().at("switch to the program's user")?;
    workdir::list(Path::new(WORK), output).at("list the files")?;
    while let Some(request) = receive(input).at("receive a request")? {
        // Input and signals for the program may still be on their way.
        if let Ok(AgentRequest::ReadFile(path)) = AgentRequest::decode(&request) {
            workdir::send_file(Path::new(WORK), path, output).at("send a file")?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_received_one_by_one_up_to_the_end() {
        let [first, second] = [AgentRequest::Stdin(b"abc"), AgentRequest::StdinEnd];
        let stream = [frame::encode(&first).unwrap(), frame::encode(&second).unwrap()].concat();
        let mut rest = stream.as_slice();
        for request in [first, second] {
            assert_eq!(receive(&mut rest).unwrap(), Some(request.encode()));
        }
        assert_eq!(receive(&mut rest).unwrap(), None);
        let error = receive(&mut &stream[..6]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        assert!(receive(&mut &[0xff; 4][..]).is_err());
    }

    #[test]
    fn a_failure_has_the_step_and_the_errors_number() {
        let failed: io::Result<()> = Err(io::Error::from_raw_os_error(13));
        let failure = StepFailure { step: "open it".to_owned(), errno: 13 };
        assert_eq!(failed.at("open it"), Err(failure));
        let failure = StepFailure { step: "decode it".to_owned(), errno: 0 };
        assert_eq!(Err::<(), _>(unexpected()).at("decode it"), Err(failure));
    }
}
