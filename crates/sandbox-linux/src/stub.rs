//! The stub: a process that is confined before the program is known, and then only has to exec it.
//!
//! A child of init, cloned ahead. On a request it only has to place files, enter a directory, apply
//! rlimits and exec. Files that are known earlier can be placed earlier.

use std::os::fd::{AsFd, BorrowedFd};

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use sandbox_protocol::Message as _;
use sandbox_protocol::exec::ExecRequest;
use sandbox_protocol::notice::Notice;

use crate::exec_message::{self, ExecMessage};
use crate::program::{self, Confinement, Program};
use crate::rootfs::{self, Existing};
use crate::socket;
use crate::step::{AtStep, StepError};
use crate::syscall::{self, Cloned, SharedNumber};

/// The waiting process, as init knows it.
#[derive(Clone, Copy)]
pub(crate) struct Stub {
    pub(crate) process: Pid,
}

impl Stub {
    /// Clones the stub. It reports to the supervisor when it is confined, and receives its request
    /// from there.
    pub(crate) fn make(
        confinement: &mut Confinement<'_>,
        started: &SharedNumber,
        requests: BorrowedFd<'_>,
        supervisor: BorrowedFd<'_>,
    ) -> Result<Self, StepError> {
        // SAFETY: init has one thread.
        match unsafe { syscall::clone_process(0, None) }.at("clone the stub")? {
            Cloned::Child => {
                if let Err(error) = wait(confinement, started, requests, supervisor) {
                    let _ = socket::send(supervisor, &Notice::Failed(error.into()).encode(), &[]);
                }
                syscall::exit_now(127)
            }
            Cloned::Parent(process, _) => Ok(Self { process }),
        }
    }

    /// Kills it: the request needs other isolation than it was confined with.
    pub(crate) fn discard(self) {
        let _ = kill_process(self.process, Signal::KILL);
        let _ = waitpid(Some(self.process), WaitOptions::empty());
    }
}

/// In the child: confines itself, waits for the request and execs the program.
fn wait(
    confinement: &mut Confinement<'_>,
    started: &SharedNumber,
    requests: BorrowedFd<'_>,
    supervisor: BorrowedFd<'_>,
) -> Result<(), StepError> {
    let listener = program::confine(confinement, supervisor, || Ok(()))?;
    program::tell(supervisor, &Notice::Confined.encode(), listener.as_ref())?;
    drop(listener);
    prefault();
    while let Some(message) = socket::receive(requests).at("wait for the program")? {
        let message = ExecMessage::open(message)?;
        let request = message.read()?;
        // As the program's user and in its cgroup: the files count against its limits.
        rootfs::write_files(&request, Existing::Refuse)?;
        if request.argv.is_empty() {
            program::tell(supervisor, &Notice::FilesWritten.encode(), None)?;
            continue;
        }
        let program = Program::new(&request)?;
        program.settle()?;
        return Err(program.execute(started));
    }
    Ok(())
}

/// Runs the code that handles a request once, up to exec: a forked process gets its memory pages on
/// first access, which would otherwise happen while a caller waits. Failure has no effect.
fn prefault() {
    let sample =
        ExecRequest { argv: vec!["/bin/true"], env: vec!["PATH=/bin"], ..ExecRequest::default() };
    let received = socket::pair().and_then(|(local, peer)| {
        let _ = exec_message::send(local.as_fd(), &sample, &[]);
        socket::receive(peer.as_fd())
    });
    if let Ok(Some(message)) = received
        && let Ok(message) = ExecMessage::open(message)
        && let Ok(request) = message.read()
        && let Ok(program) = Program::new(&request)
    {
        let _ = program.settle();
    }
}
