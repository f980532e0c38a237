//! The agent: process 1 of a container that another runtime built.
//!
//! It reads one [`Exec`](AgentRequest::Exec) request from its standard input, writes the files, starts the program behind
//! the system-call filter and resource limits that the native backend uses too, forwards its output, reaps, and reports on
//! its standard output how the program ended and which files it left. When its input ends, the supervisor is gone; the
//! agent exits, and the kernel kills everything else in the container.
//!
//! It has one thread, needs no library inside the container, and cannot be traced by the program.

mod channel;
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
use std::mem::ManuallyDrop;
use std::os::fd::FromRawFd as _;
use std::path::Path;
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
    let Ok(AgentRequest::Exec(request)) = AgentRequest::decode(&request) else {
        return Err(unexpected()).at("decode the request");
    };
    let user = user::User::new(request.program_user);
    user.act_as_program().at("switch to the program's user")?;
    workdir::write_files(Path::new(workdir::WORK), &request)?;
    workdir::link_trees(&request)?;
    user.act_as_agent().at("switch back to the agent's user")?;
    let (program, deny_rules) = exec::prepare(&request, user).at("prepare the program")?;
    drop(request);
    if !supervise::run(&program, deny_rules, io_counters, input, output)? {
        return Ok(());
    }
    user.act_as_program().at("switch to the program's user")?;
    workdir::list(Path::new(workdir::WORK), output).at("list the files")?;
    while let Some(request) = receive(input).at("receive a request")? {
        // Input and signals for the program may still be on their way.
        if let Ok(AgentRequest::ReadFile(path)) = AgentRequest::decode(&request) {
            workdir::send_file(Path::new(workdir::WORK), path, output).at("send a file")?;
        }
    }
    Ok(())
}
