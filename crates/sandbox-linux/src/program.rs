//! The last steps before exec: from a child of init to the confined program.
//!
//! This is the confinement sequence. Each step says why it stands where it does. It runs in one of
//! two processes: the stub, which is cloned ahead and waits, confined, for its exec request
//! (`stub`); or, if the request changes the isolation itself, a process that is cloned for it and
//! shares init's memory until its exec.

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
use crate::protection_set::ProtectionSet;
use crate::rlimits;
use crate::rootfs::{self, INSIDE_ID};
use crate::seccomp;
use crate::socket;
use crate::step::{AtStep, StepError};
use crate::syscall::{self, CArray, SharedNumber};

/// What does not depend on the program.
pub(crate) struct Confinement<'a> {
    pub(crate) protections: ProtectionSet,
    /// Standard input, output and error.
    pub(crate) streams: [BorrowedFd<'a>; 3],
    pub(crate) rules: Option<Rules>,
    pub(crate) filter: &'a [libc::sock_filter],
    pub(crate) filter_notifies: bool,
    /// Whether this user namespace maps further IDs, so that the program can get one of its own.
    pub(crate) has_own_ids: bool,
    pub(crate) paths: Paths,
}

/// Whether a program may have changed what paths in the sandbox mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Paths {
    /// No program has run in it yet.
    Trusted,
    /// Programs run in it: paths are resolved with no more rights than theirs.
    Untrusted,
}

/// The program in the form that exec takes.
pub(crate) struct Program {
    argv: CArray,
    envp: CArray,
    path: std::ffi::CString,
    directory: std::ffi::CString,
    pub(crate) rlimits: Vec<(Resource, Rlimit)>,
    cores: u64,
}

impl Program {
    pub(crate) fn new(request: &ExecRequest<'_>) -> Result<Self, StepError> {
        let text = |text: &str| {
            // Requests with zero bytes were refused earlier.
            std::ffi::CString::new(text).map_err(|_| Errno::INVAL).at("read the request")
        };
        let argv = request.argv.iter().map(|arg| text(arg)).collect::<Result<Vec<_>, _>>()?;
        let envp = request.env.iter().map(|pair| text(pair)).collect::<Result<Vec<_>, _>>()?;
        let path = argv.first().cloned().ok_or(Errno::INVAL).at("read the request")?;
        Ok(Self {
            argv: CArray::new(argv),
            envp: CArray::new(envp),
            path,
            directory: text(&directory(request))?,
            rlimits: rlimits::decode(&request.rlimits)?,
            cores: request.cpu_mask,
        })
    }

    /// Enters the directory and applies the rlimits.
    pub(crate) fn settle(&self) -> Result<(), StepError> {
        rustix::process::chdir(self.directory.as_c_str()).at("enter the directory to start in")?;
        for (resource, limit) in &self.rlimits {
            setrlimit(*resource, *limit).at("set a resource limit")?;
        }
        Ok(())
    }

    /// Executes it. Returns only on failure.
    pub(crate) fn execute(&self, started: &SharedNumber) -> StepError {
        started.get().store(clock::monotonic_nanos(), Ordering::Relaxed);
        let cause = syscall::execute(&self.path, &self.argv, &self.envp);
        StepError { step: format!("start {}", self.path.to_string_lossy()), cause }
    }
}

/// The directory in which a program starts.
pub(crate) fn directory(request: &ExecRequest<'_>) -> String {
    match request.directory {
        "" => rootfs::WORK.to_owned(),
        directory => format!("{}/{directory}", rootfs::WORK),
    }
}

/// Confines this process and executes the program. Returns only the step that failed. It shares
/// init's memory, but not its descriptors.
pub(crate) fn become_program(
    program: &Program,
    confinement: &mut Confinement<'_>,
    started: &SharedNumber,
    starting: &[u8],
    supervisor: BorrowedFd<'_>,
) -> StepError {
    let (early, late) = match confinement.paths {
        Paths::Trusted => (Some(program), None),
        Paths::Untrusted => (None, Some(program)),
    };
    let settle = |program: Option<&Program>| program.map_or(Ok(()), Program::settle);
    let confined = bind_to_cores(program.cores)
        .and_then(|()| confine(confinement, supervisor, || settle(early)))
        .and_then(|listener| tell(supervisor, starting, listener.as_ref()))
        .and_then(|()| settle(late));
    match confined {
        Ok(()) => program.execute(started),
        Err(error) => error,
    }
}

/// Applies every protection to this process. `settle` runs just before its IDs change. Returns the
/// filter's listener.
pub(crate) fn confine(
    confinement: &mut Confinement<'_>,
    supervisor: BorrowedFd<'_>,
    settle: impl FnOnce() -> Result<(), StepError>,
) -> Result<Option<OwnedFd>, StepError> {
    let protections = confinement.protections;
    // A session of its own first: it must not share a terminal or a process group with init.
    if protections.has(Protection::Session) {
        rustix::process::setsid().at("start a session")?;
    }
    syscall::unblock_all_signals().at("unblock signals")?;
    rustix::process::umask(Mode::from_raw_mode(0o022));
    take_streams(confinement.streams)?;
    settle()?;
    // IDs change while the capability to change them is still there.
    become_user(confinement)?;
    if protections.has(Protection::Capabilities) {
        capabilities::drop_all().at("drop all capabilities")?;
    } else {
        capabilities::hand_on_all().at("pass the capabilities on")?;
    }
    if protections.has(Protection::NoNewPrivs) {
        rustix::thread::set_no_new_privs(true).at("set no_new_privs")?;
    }
    if let Some(rules) = confinement.rules.take() {
        rules.restrict()?;
    }
    // All other descriptors are internal. They close on exec, so that a failure until then can
    // still be reported.
    if protections.has(Protection::ClosedDescriptors) {
        syscall::close_on_exec_from(3).at("close descriptors")?;
    } else {
        // The opposite on purpose, for runs without this protection: a descriptor that survives
        // exec.
        let leaked = rustix::io::dup(supervisor).at("leave a descriptor open")?;
        std::mem::forget(leaked);
    }
    // The filter comes last: the steps above use calls that it denies.
    install_filter(confinement)
}

/// Sends a notice, with the filter's listener if there is one.
pub(crate) fn tell(
    supervisor: BorrowedFd<'_>,
    notice: &[u8],
    listener: Option<&OwnedFd>,
) -> Result<(), StepError> {
    let listener: Option<BorrowedFd<'_>> = listener.map(AsFd::as_fd);
    socket::send(supervisor, notice, listener.as_slice()).at("report that it starts")
}

fn take_streams([stdin, stdout, stderr]: [BorrowedFd<'_>; 3]) -> Result<(), StepError> {
    rustix::stdio::dup2_stdin(stdin).at("set standard input")?;
    rustix::stdio::dup2_stdout(stdout).at("set standard output")?;
    rustix::stdio::dup2_stderr(stderr).at("set standard error")
}

fn become_user(confinement: &Confinement<'_>) -> Result<(), StepError> {
    if !confinement.protections.has(Protection::Capabilities) {
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
    if !confinement.protections.has(Protection::Seccomp) {
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
