//! Running one program, and the files that it leaves.

use std::fs::File;
use std::path::Path;

use sandbox_protocol::Message as _;
use sandbox_protocol::agent::{AgentExec, AgentRequest};
use sandbox_protocol::notice::StepFailure;

use crate::channel::{AtStep as _, receive};
use crate::exec;
use crate::io_counters::IoCounters;
use crate::supervise::{self, Descendants};
use crate::user::User;
use crate::workdir::{self, WORK};

/// Runs the only program of a container, and sends its files until the supervisor has what it wants.
pub(crate) fn run(
    request: AgentExec<'_>,
    io_counters: IoCounters,
    input: &mut File,
    output: &mut File,
) -> Result<(), StepFailure> {
    let user = User::new(request.program_user);
    if !run_program(request, Descendants::All, io_counters, input, output)? {
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

/// Runs a program and reports its end. False if there is no report ([`supervise::run`]).
pub(crate) fn run_program(
    request: AgentExec<'_>,
    descendants: Descendants,
    io_counters: IoCounters,
    input: &mut File,
    output: &mut File,
) -> Result<bool, StepFailure> {
    let user = User::new(request.program_user);
    user.act_as_program().at("switch to the program's user")?;
    workdir::write_files(Path::new(WORK), &request.files)?;
    workdir::create_initial(Path::new(WORK), request.directory)?;
    workdir::link_trees(&request.writable_trees)?;
    user.act_as_agent().at("switch back to the agent's user")?;
    let (program, deny_rules) = exec::prepare(&request, user).at("prepare the program")?;
    drop(request);
    supervise::run(&program, deny_rules, descendants, io_counters, input, output)
}
