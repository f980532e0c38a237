//! The agent: process 1 of a container that another runtime built.
//!
//! It waits for an order on its standard input, places the files, starts the program behind the same system-call
//! filter and resource limits that the native walls have, passes its output on, reaps, and says on its standard
//! output how it ended and what it left. When its input ends, whoever sent it here is gone, and so is everything
//! that runs here. It has one thread, needs no library inside, and is nobody's to look into.

mod denied;
#[allow(dead_code, reason = "the supervisor uses the rest")]
mod frame;
mod landlock;
mod moved;
mod order;
mod system;
mod user;
mod watch;
mod work;

use std::fs::File;
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::FromRawFd as _;
use std::process::ExitCode;

use frame::{receive, send, to_agent, to_supervisor};

fn main() -> ExitCode {
    // SAFETY: whoever starts a process gives it these two, and nothing here closes them.
    let (input, output) = unsafe { (File::from_raw_fd(0), File::from_raw_fd(1)) };
    let (mut input, mut output) = (ManuallyDrop::new(input), ManuallyDrop::new(output));
    match serve(&mut input, &mut output) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure { step, cause }) => {
            let mut text = cause.raw_os_error().unwrap_or(0).to_le_bytes().to_vec();
            text.extend_from_slice(step.as_bytes());
            // Whoever does not hear this is gone.
            let _ = send(&mut *output, to_supervisor::FAILED, &text);
            ExitCode::FAILURE
        }
    }
}

/// What could not be done.
pub(crate) struct Failure {
    step: String,
    cause: io::Error,
}

/// Says at which step something failed.
pub(crate) trait At<T> {
    fn at(self, step: &str) -> Result<T, Failure>;
}

impl<T> At<T> for io::Result<T> {
    fn at(self, step: &str) -> Result<T, Failure> {
        self.map_err(|cause| Failure { step: step.to_owned(), cause })
    }
}

fn serve(input: &mut File, output: &mut File) -> Result<(), Failure> {
    let moved = moved::Moved::open();
    system::hide_memory().at("hide the agent's memory")?;
    send(output, to_supervisor::READY, &[]).at("say that the agent is ready")?;
    let Some((kind, order)) = receive(input).at("receive the order")? else {
        return Ok(());
    };
    if kind != to_agent::ORDER {
        return Err(io::ErrorKind::InvalidData.into()).at("receive the order");
    }
    let order = order::Order::read(&order).ok_or(io::ErrorKind::InvalidData.into());
    let order = order.at("understand the order")?;
    let user = order.user;
    user.act_as_program().at("become the program's user")?;
    work::place(&order)?;
    work::copy(&order)?;
    user.act_as_agent().at("become the agent's user")?;
    let (program, answers) = order.into_program().at("make the Landlock rules")?;
    let has_ended = watch::run(&program, answers, moved, input, output)?;
    if !has_ended {
        // Nobody is there to hear more.
        return Ok(());
    }
    user.act_as_program().at("become the program's user")?;
    work::list(output).at("list what the program left")?;
    while let Some((kind, path)) = receive(input).at("receive what is wanted")? {
        if kind == to_agent::FETCH {
            work::give(&path, output).at("hand a file over")?;
        }
    }
    Ok(())
}
