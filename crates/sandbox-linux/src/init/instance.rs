//! Init of an instance: a sandbox in which any number of programs run, one after another and at
//! once.
//!
//! Each program has a shim, a child of init. It does for its program what init
//! does in a sandbox with only one: it starts the program confined, forwards signals, reaps, kills
//! what is left at the end, and reports on a socket of its own (`children` tells how it reaches all
//! descendants). It is protected from programs as init is: by another user ID, if there are IDs to
//! assign, and by not being dumpable. If it is killed nevertheless, its socket closes without a
//! report, and the supervisor destroys the instance.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{
    PidfdFlags, Signal, WaitOptions, getpid, pidfd_open, set_parent_process_death_signal,
};
use rustix::thread::CapabilitySet;
use sandbox_core::Protection;
use sandbox_protocol::Message as _;
use sandbox_protocol::exec::ExecRequest;
use sandbox_protocol::notice::Notice;

use super::children::Children;
use super::exec::clone_program;
use super::watch::{Reach, watch};
use super::{Init, Prepared};
use crate::capabilities;
use crate::exec_message::ExecMessage;
use crate::program::{self, Confinement, Paths};
use crate::rootfs::{self, Existing};
use crate::socket;
use crate::step::{AtStep, StepError};
use crate::syscall::{self, Cloned, SharedNumber};

/// What starting and signalling programs requires.
const NEEDED: CapabilitySet =
    CapabilitySet::KILL.union(CapabilitySet::SETUID).union(CapabilitySet::SETGID);

/// The descriptors of a request.
struct Ends {
    supervisor: OwnedFd,
    /// The program's streams, if there is a program.
    streams: Vec<OwnedFd>,
}

/// Starts programs until the supervisor closes its socket. Everything else ends with init.
pub(super) fn serve(init: &Init<'_>, mut prepared: Prepared) -> Result<(), StepError> {
    let protections = init.config.protections;
    // Without either protection, a program's confinement needs more.
    if protections.has(Protection::Capabilities) && protections.has(Protection::NoNewPrivs) {
        capabilities::keep_only(NEEDED).at("drop init's capabilities")?;
    }
    let supervisor = init.supervisor.as_fd();
    let ended = syscall::signal_descriptor(&prepared.signals).at("listen to signals")?;
    socket::send(supervisor, &Notice::Serving.encode(), &[]).at("report that init is ready")?;
    loop {
        let mut watched = [
            PollFd::from_borrowed_fd(supervisor, PollFlags::IN),
            PollFd::new(&ended, PollFlags::IN),
        ];
        match poll(&mut watched, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error).at("wait for a request"),
        }
        let is_asked = !watched[0].revents().is_empty();
        reap(ended.as_fd());
        if is_asked {
            match socket::receive(supervisor).at("wait for a request")? {
                Some(message) => start(init, &mut prepared, ExecMessage::open(message)?)?,
                None => return Ok(()),
            }
        }
    }
}

/// Reaps every process that has ended.
fn reap(ended: BorrowedFd<'_>) {
    // What the signals say does not matter, and several of one kind count as one.
    while rustix::io::read(ended, &mut [0; 512]).is_ok() {}
    while let Ok(Some(_)) = rustix::process::wait(WaitOptions::NOHANG) {}
}

/// Clones the shim of a program.
fn start(
    init: &Init<'_>,
    prepared: &mut Prepared,
    mut message: ExecMessage,
) -> Result<(), StepError> {
    let mut descriptors = std::mem::take(&mut message.descriptors).into_iter();
    let supervisor = descriptors.next().ok_or(Errno::BADMSG).at("receive a request")?;
    let ends = Ends { supervisor, streams: descriptors.collect() };
    // SAFETY: init has one thread.
    match unsafe { syscall::clone_process(0, None) } {
        Ok(Cloned::Child) => {
            let supervisor = ends.supervisor.try_clone();
            let ended = run_shim(init, prepared, ends, &message);
            if let (Err(error), Ok(supervisor)) = (ended, supervisor) {
                // If this fails too, the supervisor notices the closed socket.
                let failed = Notice::Failed(error.into()).encode();
                let _ = socket::send(supervisor.as_fd(), &failed, &[]);
            }
            syscall::exit_now(0)
        }
        Ok(Cloned::Parent(..)) => {}
        Err(cause) => {
            // Other programs may have used up the processes of the instance.
            let error = StepError { step: "clone the shim of a program".to_owned(), cause };
            let failed = Notice::Failed(error.into()).encode();
            // The supervisor may have lost interest.
            let _ = socket::send(ends.supervisor.as_fd(), &failed, &[]);
        }
    }
    Ok(())
}

/// In the child: carries the request out.
fn run_shim(
    init: &Init<'_>,
    prepared: &mut Prepared,
    ends: Ends,
    message: &ExecMessage,
) -> Result<(), StepError> {
    set_parent_process_death_signal(Some(Signal::KILL))
        .at("set the parent death signal of a shim")?;
    let supervisor = ends.supervisor.as_fd();
    let this = pidfd_open(getpid(), PidfdFlags::empty()).at("refer to a shim")?;
    socket::send(supervisor, &Notice::Cloned.encode(), &[this.as_fd()])
        .at("report that a shim runs")?;
    drop(this);
    let request = message.read()?;
    if request.argv.is_empty() {
        return write_files(init, prepared, supervisor, &request);
    }
    let children = Children::adopt()?;
    // Init's own is shared with every process that it cloned.
    let started = SharedNumber::new().at("allocate shared memory for the start time")?;
    let [stdin, stdout, stderr] = ends.streams.as_slice() else {
        return Err(Errno::BADMSG).at("receive a request");
    };
    let streams = [stdin, stdout, stderr].map(AsFd::as_fd);
    let confinement = prepared.confinement_among_others(init, streams);
    let program = clone_program(supervisor, &request, confinement, &started)?;
    // Standard input ends when its last writer closes it: that must be the supervisor.
    drop(ends.streams);
    // The only privileged operation left is signalling the program's user.
    capabilities::keep_only(CapabilitySet::KILL).at("drop capabilities")?;
    let exit = watch(program, &prepared.signals, &started, &Reach::Descendants(children))?;
    socket::send(supervisor, &Notice::Exited(exit).encode(), &[]).at("report the exit")?;
    // The supervisor reads this process's counters until it closes the socket.
    let _ = socket::receive(supervisor);
    Ok(())
}

/// Writes files with the program's rights, in place of files that are there: a path means what it
/// means to a program. They count against the limits of the instance.
fn write_files(
    init: &Init<'_>,
    prepared: &mut Prepared,
    supervisor: BorrowedFd<'_>,
    request: &ExecRequest<'_>,
) -> Result<(), StepError> {
    let null = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty());
    let null = null.at("open /dev/null")?;
    let mut confinement = prepared.confinement_among_others(init, [null.as_fd(); 3]);
    program::confine(&mut confinement, supervisor, || Ok(()))?;
    rootfs::write_files(request, Existing::Replace)?;
    program::tell(supervisor, &Notice::FilesWritten.encode(), None)
}

impl Prepared {
    /// The confinement of a process beside others.
    fn confinement_among_others<'a>(
        &'a mut self,
        init: &Init<'_>,
        streams: [BorrowedFd<'a>; 3],
    ) -> Confinement<'a> {
        let rules = self.rules.take();
        Confinement { paths: Paths::Untrusted, ..self.confinement(init, streams, rules) }
    }
}
