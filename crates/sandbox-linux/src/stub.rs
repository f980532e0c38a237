//! A process that stands inside every wall before there is a program, and then only has to become it.
//!
//! A copy of init, made ahead: what is left on an order is to place its files, enter a directory, take
//! limits and exec. Files that are known before the program is can be placed before.

use std::os::fd::{AsFd, BorrowedFd};

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use sandbox_protocol::Message as _;
use sandbox_protocol::exec::ExecRequest;
use sandbox_protocol::notice::Notice;

use crate::exec_message::{self, ExecMessage};
use crate::place;
use crate::program::{self, Confinement, Program};
use crate::socket;
use crate::step::{AtStep, StepError};
use crate::syscall::{self, Cloned, SharedNumber};

/// The waiting process, as init knows it.
#[derive(Clone, Copy)]
pub(crate) struct Stub {
    pub(crate) process: Pid,
}

impl Stub {
    /// Makes one. It tells the supervisor when it is confined, and hears its order from there.
    pub(crate) fn make(
        confinement: &mut Confinement<'_>,
        started: &SharedNumber,
        orders: BorrowedFd<'_>,
        supervisor: BorrowedFd<'_>,
    ) -> Result<Self, StepError> {
        // SAFETY: init has one thread.
        match unsafe { syscall::clone_process(0, None) }.at("clone the program-to-be")? {
            Cloned::Child => {
                if let Err(error) = wait(confinement, started, orders, supervisor) {
                    let _ = socket::send(supervisor, &Notice::Failed(error.into()).encode(), &[]);
                }
                syscall::exit_now(127)
            }
            Cloned::Parent(process, _) => Ok(Self { process }),
        }
    }

    /// Ends it: the order asks for walls that it was not made with.
    pub(crate) fn discard(self) {
        let _ = kill_process(self.process, Signal::KILL);
        let _ = waitpid(Some(self.process), WaitOptions::empty());
    }
}

/// In the copy: confines itself, waits for the order and becomes the program.
fn wait(
    confinement: &mut Confinement<'_>,
    started: &SharedNumber,
    orders: BorrowedFd<'_>,
    supervisor: BorrowedFd<'_>,
) -> Result<(), StepError> {
    let listener = program::confine(confinement, supervisor, || Ok(()))?;
    program::tell(supervisor, &Notice::Confined.encode(), listener.as_ref())?;
    drop(listener);
    rehearse();
    while let Some(message) = socket::receive(orders).at("wait for the program")? {
        let message = ExecMessage::open(message)?;
        let order = message.read()?;
        // In the program's name: what it brings is its own, and counts against its limits.
        place::write_files(&order)?;
        if order.argv.is_empty() {
            program::tell(supervisor, &Notice::FilesWritten.encode(), None)?;
            continue;
        }
        let program = Program::new(&order)?;
        program.settle()?;
        return Err(program.execute(started));
    }
    Ok(())
}

/// Goes the way that an order takes, up to the program: a copy of a process has its memory only when it touches it,
/// and that would be while somebody waits. It is no matter if it fails.
fn rehearse() {
    let sample =
        ExecRequest { argv: vec!["/bin/true"], env: vec!["PATH=/bin"], ..ExecRequest::default() };
    let received = socket::pair().and_then(|(ours, theirs)| {
        let _ = exec_message::send(ours.as_fd(), &sample, &[]);
        socket::receive(theirs.as_fd())
    });
    if let Ok(Some(message)) = received
        && let Ok(message) = ExecMessage::open(message)
        && let Ok(order) = message.read()
        && let Ok(program) = Program::new(&order)
    {
        let _ = program.settle();
    }
}
