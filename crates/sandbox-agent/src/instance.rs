//! Any number of programs, one after another and at once.
//!
//! Process 1 runs none of them. For each connection it forks a shim, which either runs one program as the agent of a
//! one-shot container does, or operates on files. A connection is a socket in process 1, of which the supervisor takes a
//! copy from outside: the container's own streams carry nothing but requests for connections.
//!
//! The kernel protects only process 1 from signals of its own user, so in this mode programs run as another user. What a
//! program starts becomes a child of the shim when it loses its parent, and dies with the program. If a
//! shim dies early, the supervisor notices the end of the connection, and kills the container.

use std::fs::File;
use std::os::fd::AsRawFd as _;
use std::path::Path;

use sandbox_protocol::Message as _;
use sandbox_protocol::agent::{AgentEvent, AgentRequest, AgentSetup};
use sandbox_protocol::notice::StepFailure;

use crate::channel::{AtStep as _, receive, send, unexpected};
use crate::files::WorkDirectory;
use crate::io_counters::IoCounters;
use crate::socket;
use crate::stage::run_program;
use crate::supervise::Descendants;
use crate::sys;
use crate::user::User;
use crate::workdir::{self, WORK};

/// Writes the files that are there before the first program. Returns the programs' user.
pub(crate) fn prepare(setup: &AgentSetup<'_>) -> Result<User, StepFailure> {
    let user = User::new(setup.program_user);
    user.act_as_program().at("switch to the program's user")?;
    workdir::write_files(Path::new(WORK), &setup.files)?;
    workdir::link_trees(&setup.writable_trees)?;
    user.act_as_agent().at("switch back to the agent's user")?;
    Ok(user)
}

/// Opens connections until the supervisor is gone. Also returns at the end of a connection, in the shim at its end.
pub(crate) fn serve(user: User, input: &mut File, output: &mut File) -> Result<(), StepFailure> {
    sys::ignore_sigchld().at("ignore SIGCHLD")?;
    send(output, &AgentEvent::Ready).at("report that the agent is ready")?;
    while receive_request(input, &AgentRequest::Connect)? {
        let (inner, outer) = socket::stream_pair().at("create a socket")?;
        if sys::fork().at("fork a shim")? == 0 {
            drop(outer);
            // From here on, the standard streams are the connection.
            sys::replace(&*input, &inner).at("set up a connection")?;
            sys::replace(&*output, &inner).at("set up a connection")?;
            drop(inner);
            return run_shim(user, input, output);
        }
        drop(inner);
        let descriptor = outer.as_raw_fd().cast_unsigned();
        send(output, &AgentEvent::Connection { descriptor }).at("report a connection")?;
        if !receive_request(input, &AgentRequest::Connected)? {
            return Ok(());
        }
    }
    Ok(())
}

/// Receives a request that must be this one. False at the end of the stream.
fn receive_request(input: &mut File, expected: &AgentRequest<'_>) -> Result<bool, StepFailure> {
    const STEP: &str = "receive a request";
    match receive(input).at(STEP)? {
        None => Ok(false),
        Some(request) if AgentRequest::decode(&request).as_ref() == Ok(expected) => Ok(true),
        Some(_) => Err(unexpected()).at(STEP),
    }
}

/// Runs one program, or operates on files until the connection ends.
fn run_shim(user: User, input: &mut File, output: &mut File) -> Result<(), StepFailure> {
    let io_counters = IoCounters::open();
    let mut received = receive(input).at("receive the request")?;
    if let Some(request) = &received
        && let Ok(AgentRequest::Exec(exec)) = AgentRequest::decode(request)
    {
        sys::adopt_orphans().at("become the parent of orphans")?;
        return run_program(exec, Descendants::Own, io_counters, input, output).map(drop);
    }
    user.act_as_program().at("switch to the program's user")?;
    let work = WorkDirectory::open(Path::new(WORK)).at("open the work directory")?;
    while let Some(request) = received {
        let request = AgentRequest::decode(&request);
        let request = request.map_err(|_| unexpected()).at("decode the request")?;
        work.handle(&request, output).at("answer a request")?;
        received = receive(input).at("receive a request")?;
    }
    Ok(())
}
