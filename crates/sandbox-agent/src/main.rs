//! The agent: process 1 of a container that another runtime built.
//!
//! For one program, it reads an [`Exec`](AgentRequest::Exec) request from its standard input, writes the files, starts the
//! program behind the system-call filter and resource limits that the native backend uses too, forwards its output, reaps,
//! and reports on its standard output how the program ended and which files it left. For any number of programs, it
//! forks a process for each, which does the same on a connection of its own ([`instance`]).
//!
//! When its input ends, the supervisor is gone; the agent exits, and the kernel kills everything else in the container.
//!
//! It has one thread, needs no library inside the container, and cannot be traced by the program.

mod channel;
mod deny;
mod exec;
mod files;
mod instance;
mod io_counters;
mod landlock;
mod seccomp;
mod socket;
mod spawn;
mod stage;
mod supervise;
mod sys;
mod user;
mod workdir;
mod writes;

use std::fs::File;
use std::mem::ManuallyDrop;
use std::os::fd::FromRawFd as _;
use std::process::ExitCode;

use sandbox_protocol::Message as _;
use sandbox_protocol::agent::{AgentEvent, AgentRequest};
use sandbox_protocol::notice::StepFailure;

use channel::{AtStep as _, receive, send, unexpected};

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

fn serve(input: &mut File, output: &mut File) -> Result<(), StepFailure> {
    // Opened first: an undumpable process cannot open it.
    let io_counters = io_counters::IoCounters::open();
    sys::set_undumpable().at("make the agent untraceable")?;
    send(output, &AgentEvent::Ready).at("report that the agent is ready")?;
    let received = receive(input).at("receive the request")?;
    let Some(request) = received else { return Ok(()) };
    let user = match AgentRequest::decode(&request) {
        Ok(AgentRequest::Exec(exec)) => return stage::run(exec, io_counters, input, output),
        Ok(AgentRequest::Serve(setup)) => instance::prepare(&setup)?,
        _ => return Err(unexpected()).at("decode the request"),
    };
    drop(request);
    instance::serve(user, input, output)
}
