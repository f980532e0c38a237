//! The last steps before exec: from a copy of init to the program, inside every wall.
//!
//! This is the confinement sequence. Each step says why it stands where it does. The process shares
//! init's memory, and init waits: what is changed here is changed for both, until exec.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering;

use rustix::fs::Mode;
use rustix::process::{Resource, Rlimit, setrlimit};
use rustix::thread::{CpuSet, Gid, Uid};
use sandbox_core::Protection;

use crate::capabilities;
use crate::clock;
use crate::landlock::Rules;
use crate::place::INSIDE_ID;
use crate::seccomp;
use crate::socket;
use crate::step::{AtStep, StepError};
use crate::syscall::{self, CArray, SharedNumber};
use crate::walls::Walls;

/// Everything the program needs, ready before the clone.
pub(crate) struct Program {
    pub(crate) walls: Walls,
    pub(crate) argv: CArray,
    pub(crate) envp: CArray,
    pub(crate) path: std::ffi::CString,
    pub(crate) directory: std::ffi::CString,
    pub(crate) streams: [OwnedFd; 3],
    pub(crate) rlimits: Vec<(Resource, Rlimit)>,
    pub(crate) cores: u64,
    pub(crate) rules: Option<Rules>,
    pub(crate) filter: Vec<libc::sock_filter>,
    pub(crate) filter_notifies: bool,
    /// Whether this user namespace maps ids besides the program's, so that it can be changed to.
    pub(crate) has_own_ids: bool,
    /// Where the moment just before exec is left for init.
    pub(crate) started: SharedNumber,
    /// The last notice, encoded before the clone.
    pub(crate) starting: Vec<u8>,
}

/// Becomes the program. Returns only with the step that failed. What it borrows stays init's, which
/// shares this memory but not these descriptors, and closes its own.
pub(crate) fn become_program(program: &mut Program, supervisor: BorrowedFd<'_>) -> StepError {
    if let Err(error) = confine(program, supervisor) {
        error
    } else {
        program.started.get().store(clock::monotonic_nanos(), Ordering::Relaxed);
        let cause = syscall::execute(&program.path, &program.argv, &program.envp);
        StepError { step: format!("start {}", program.path.to_string_lossy()), cause }
    }
}

fn confine(program: &mut Program, supervisor: BorrowedFd<'_>) -> Result<(), StepError> {
    let walls = program.walls;
    // A session of its own first: it must not share a terminal or a process group with init.
    if walls.has(Protection::Session) {
        rustix::process::setsid().at("start a session")?;
    }
    syscall::unblock_all_signals().at("unblock signals")?;
    rustix::process::umask(Mode::from_raw_mode(0o022));
    take_streams(program)?;
    rustix::process::chdir(program.directory.as_c_str()).at("enter the directory to start in")?;
    if program.cores != 0 {
        // Before the filter, which then keeps the program from widening it again.
        rustix::thread::sched_setaffinity(None, &cpu_set(program.cores)).at("bind to cores")?;
    }
    for (resource, limit) in &program.rlimits {
        setrlimit(*resource, *limit).at("set a resource limit")?;
    }
    // Ids change while the capability to change them is still there.
    become_user(program)?;
    if walls.has(Protection::Capabilities) {
        capabilities::drop_all().at("drop all capabilities")?;
    } else {
        capabilities::hand_on_all().at("hand on the capabilities")?;
    }
    if walls.has(Protection::NoNewPrivs) {
        rustix::thread::set_no_new_privs(true).at("renounce new privileges")?;
    }
    if let Some(rules) = program.rules.take() {
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
    install_filter(program, supervisor)
}

fn take_streams(program: &Program) -> Result<(), StepError> {
    let [stdin, stdout, stderr] = &program.streams;
    rustix::stdio::dup2_stdin(stdin).at("take standard input")?;
    rustix::stdio::dup2_stdout(stdout).at("take standard output")?;
    rustix::stdio::dup2_stderr(stderr).at("take standard error")
}

fn become_user(program: &Program) -> Result<(), StepError> {
    if !program.walls.has(Protection::Capabilities) {
        rustix::thread::set_keep_capabilities(true).at("keep capabilities")?;
    }
    if !program.has_own_ids {
        return Ok(());
    }
    rustix::thread::set_thread_groups(&[]).at("leave all groups")?;
    let (uid, gid) = (Uid::from_raw(INSIDE_ID), Gid::from_raw(INSIDE_ID));
    rustix::thread::set_thread_res_gid(gid, gid, gid).at("change the group")?;
    rustix::thread::set_thread_res_uid(uid, uid, uid).at("change the user")
}

fn install_filter(program: &Program, supervisor: BorrowedFd<'_>) -> Result<(), StepError> {
    let listener = if program.walls.has(Protection::Seccomp) {
        let wanted = if program.filter_notifies {
            seccomp::Listener::Wanted
        } else {
            seccomp::Listener::Unwanted
        };
        seccomp::install(&program.filter, wanted).at("install the system-call filter")?
    } else {
        None
    };
    let listener: Option<BorrowedFd<'_>> = listener.as_ref().map(AsFd::as_fd);
    socket::send(supervisor, &program.starting, listener.as_slice()).at("say that it starts")
}

fn cpu_set(mask: u64) -> CpuSet {
    let mut set = CpuSet::new();
    for core in (0..64).filter(|core| mask & (1 << core) != 0) {
        set.set(core);
    }
    set
}
