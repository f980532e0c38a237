//! The last steps before exec: from a copy of init to the program, inside every wall.
//!
//! This is the confinement sequence. Each step says why it stands where it does. It runs in one of two
//! processes: one that was copied ahead and waits, confined, to hear what to become (`stub`); or one that
//! is made on an order which changes the walls themselves, and shares init's memory until its exec.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering;

use rustix::fs::Mode;
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, setrlimit};
use rustix::thread::{CpuSet, Gid, Uid};
use sandbox_core::Protection;
use sandbox_protocol::exec::ExecRequest;

use crate::capabilities;
use crate::clock;
use crate::landlock::Rules;
use crate::place::{self, INSIDE_ID};
use crate::rlimits;
use crate::seccomp;
use crate::socket;
use crate::step::{AtStep, StepError};
use crate::syscall::{self, CArray, SharedNumber};
use crate::walls::Walls;

/// What does not depend on the program.
pub(crate) struct Confinement<'a> {
    pub(crate) walls: Walls,
    /// Standard input, output and error.
    pub(crate) streams: [BorrowedFd<'a>; 3],
    pub(crate) rules: Option<Rules>,
    pub(crate) filter: &'a [libc::sock_filter],
    pub(crate) filter_notifies: bool,
    /// Whether this user namespace maps ids besides the program's, so that it can be changed to.
    pub(crate) has_own_ids: bool,
}

/// The program itself, in the form that exec wants.
pub(crate) struct Program {
    argv: CArray,
    envp: CArray,
    path: std::ffi::CString,
    directory: std::ffi::CString,
    pub(crate) rlimits: Vec<(Resource, Rlimit)>,
    cores: u64,
}

impl Program {
    pub(crate) fn new(order: &ExecRequest<'_>) -> Result<Self, StepError> {
        let text = |text: &str| {
            // Requests with zero bytes were refused when they were made.
            std::ffi::CString::new(text).map_err(|_| Errno::INVAL).at("read the order")
        };
        let argv = order.argv.iter().map(|arg| text(arg)).collect::<Result<Vec<_>, _>>()?;
        let envp = order.env.iter().map(|pair| text(pair)).collect::<Result<Vec<_>, _>>()?;
        let path = argv.first().cloned().ok_or(Errno::INVAL).at("read the order")?;
        Ok(Self {
            argv: CArray::new(argv),
            envp: CArray::new(envp),
            path,
            directory: text(&directory(order))?,
            rlimits: rlimits::decode(&order.rlimits)?,
            cores: order.cpu_mask,
        })
    }

    /// Enters its directory and takes its limits.
    pub(crate) fn settle(&self) -> Result<(), StepError> {
        rustix::process::chdir(self.directory.as_c_str()).at("enter the directory to start in")?;
        for (resource, limit) in &self.rlimits {
            setrlimit(*resource, *limit).at("set a resource limit")?;
        }
        Ok(())
    }

    /// Becomes it. Returns only with the reason why it could not.
    pub(crate) fn execute(&self, started: &SharedNumber) -> StepError {
        started.get().store(clock::monotonic_nanos(), Ordering::Relaxed);
        let cause = syscall::execute(&self.path, &self.argv, &self.envp);
        StepError { step: format!("start {}", self.path.to_string_lossy()), cause }
    }
}

/// Where a program starts.
pub(crate) fn directory(order: &ExecRequest<'_>) -> String {
    match order.directory {
        "" => place::WORK.to_owned(),
        directory => format!("{}/{directory}", place::WORK),
    }
}

/// Becomes the program. Returns only with the step that failed. What it borrows stays init's, which
/// shares this memory but not these descriptors.
pub(crate) fn become_program(
    program: &Program,
    confinement: &mut Confinement<'_>,
    started: &SharedNumber,
    starting: &[u8],
    supervisor: BorrowedFd<'_>,
) -> StepError {
    let confined = bind_to_cores(program.cores)
        .and_then(|()| confine(confinement, supervisor, || program.settle()))
        .and_then(|listener| tell(supervisor, starting, listener.as_ref()));
    match confined {
        Ok(()) => program.execute(started),
        Err(error) => error,
    }
}

/// Puts every wall around this process. `settle` is what is left to do before its ids change. Gives the
/// filter's notifications.
pub(crate) fn confine(
    confinement: &mut Confinement<'_>,
    supervisor: BorrowedFd<'_>,
    settle: impl FnOnce() -> Result<(), StepError>,
) -> Result<Option<OwnedFd>, StepError> {
    let walls = confinement.walls;
    // A session of its own first: it must not share a terminal or a process group with init.
    if walls.has(Protection::Session) {
        rustix::process::setsid().at("start a session")?;
    }
    syscall::unblock_all_signals().at("unblock signals")?;
    rustix::process::umask(Mode::from_raw_mode(0o022));
    take_streams(confinement.streams)?;
    settle()?;
    // Ids change while the capability to change them is still there.
    become_user(confinement)?;
    if walls.has(Protection::Capabilities) {
        capabilities::drop_all().at("drop all capabilities")?;
    } else {
        capabilities::hand_on_all().at("hand on the capabilities")?;
    }
    if walls.has(Protection::NoNewPrivs) {
        rustix::thread::set_no_new_privs(true).at("renounce new privileges")?;
    }
    if let Some(rules) = confinement.rules.take() {
        rules.restrict()?;
    }
    // Everything else this process had open belongs to us. It goes at exec, so that a failure until
    // then can still be told.
    if walls.has(Protection::ClosedDescriptors) {
        syscall::close_on_exec_from(3).at("close descriptors")?;
    } else {
        // The opposite on purpose, for runs with this wall off: a descriptor that survives exec.
        let leaked = rustix::io::dup(supervisor).at("leave a descriptor open")?;
        std::mem::forget(leaked);
    }
    // The filter comes last: the steps above use calls that it refuses.
    install_filter(confinement)
}

/// Says something, with the filter's notifications if there are any.
pub(crate) fn tell(
    supervisor: BorrowedFd<'_>,
    notice: &[u8],
    listener: Option<&OwnedFd>,
) -> Result<(), StepError> {
    let listener: Option<BorrowedFd<'_>> = listener.map(AsFd::as_fd);
    socket::send(supervisor, notice, listener.as_slice()).at("say that it starts")
}

fn take_streams([stdin, stdout, stderr]: [BorrowedFd<'_>; 3]) -> Result<(), StepError> {
    rustix::stdio::dup2_stdin(stdin).at("take standard input")?;
    rustix::stdio::dup2_stdout(stdout).at("take standard output")?;
    rustix::stdio::dup2_stderr(stderr).at("take standard error")
}

fn become_user(confinement: &Confinement<'_>) -> Result<(), StepError> {
    if !confinement.walls.has(Protection::Capabilities) {
        rustix::thread::set_keep_capabilities(true).at("keep capabilities")?;
    }
    if !confinement.has_own_ids {
        return Ok(());
    }
    rustix::thread::set_thread_groups(&[]).at("leave all groups")?;
    let (uid, gid) = (Uid::from_raw(INSIDE_ID), Gid::from_raw(INSIDE_ID));
    rustix::thread::set_thread_res_gid(gid, gid, gid).at("change the group")?;
    rustix::thread::set_thread_res_uid(uid, uid, uid).at("change the user")
}

fn install_filter(confinement: &Confinement<'_>) -> Result<Option<OwnedFd>, StepError> {
    if !confinement.walls.has(Protection::Seccomp) {
        return Ok(None);
    }
    let wanted = if confinement.filter_notifies {
        seccomp::Listener::Wanted
    } else {
        seccomp::Listener::Unwanted
    };
    seccomp::install(confinement.filter, wanted).at("install the system-call filter")
}

fn bind_to_cores(mask: u64) -> Result<(), StepError> {
    if mask == 0 {
        return Ok(());
    }
    // Before the filter, which then keeps the program from widening it again.
    rustix::thread::sched_setaffinity(None, &cpu_set(mask)).at("bind to cores")
}

pub(crate) fn cpu_set(mask: u64) -> CpuSet {
    let mut set = CpuSet::new();
    for core in (0..64).filter(|core| mask & (1 << core) != 0) {
        set.set(core);
    }
    set
}
