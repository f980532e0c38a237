//! The first process of a sandbox: builds what is left to build, starts the program, reaps everything
//! that dies, passes signals on, and tells the supervisor how it ended.
//!
//! It is the only process of ours inside. It cannot be debugged or signalled by the program: it has
//! another id (where there are ids to give), is not dumpable, and is process 1 of the namespace.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{
    DumpableBehavior, Pid, Signal, WaitOptions, kill_process_group, set_dumpable_behavior,
    set_parent_process_death_signal,
};
use rustix::thread::CapabilitySet;
use sandbox_core::Protection;

use crate::capabilities;
use crate::clock;
use crate::loopback;
use crate::order::{Config, ExitNotice, Notice, Order};
use crate::place;
use crate::program::{self, Program};
use crate::rlimits;
use crate::socket;
use crate::step::{AtStep, StepError};
use crate::syscall::{self, CArray, Cloned, SharedNumber, Whose};
use crate::walls::Walls;

/// What init gets from the slot it was copied from.
pub(crate) struct Init<'a> {
    pub(crate) config: &'a Config,
    pub(crate) order: Order<'a>,
    pub(crate) streams: [OwnedFd; 3],
    pub(crate) volumes: Vec<OwnedFd>,
    pub(crate) supervisor: BorrowedFd<'a>,
    pub(crate) has_own_ids: bool,
}

/// Runs to the end of the sandbox.
pub(crate) fn run(init: Init<'_>) -> ! {
    let supervisor = init.supervisor;
    if let Err(error) = try_run(init) {
        // If even this cannot be told, the supervisor sees the socket close.
        let _ = socket::send(supervisor, &Notice::Failed(error).encode(), &[]);
    }
    syscall::exit_now(0)
}

fn try_run(init: Init<'_>) -> Result<(), StepError> {
    let walls = init.config.walls;
    set_parent_process_death_signal(Some(Signal::KILL)).at("bind init's life to its slot")?;
    let signals = syscall::block_all_signals().at("block signals")?;
    // The slot was undumpable, and so is its copy: a process like that may not look at its own files
    // in /proc. No other process is here yet that could make use of the moment.
    set_dumpable_behavior(DumpableBehavior::Dumpable).at("look at init's own files")?;
    build(&init)?;
    // Offsets are set through /proc, which without a PID namespace is not this sandbox's own.
    let own_clocks = walls.has(Protection::TimeNamespace) && walls.has(Protection::PidNamespace);
    let clock = if own_clocks {
        clock::start_at_zero().at("start the clocks of the time namespace")?
    } else {
        Duration::ZERO
    };
    let counters = IoCounters::open();
    let before = counters.as_ref().map(IoCounters::read).unwrap_or_default();
    let work = rustix::fs::open(
        place::WORK,
        OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )
    .at("open the work directory")?;
    socket::send(init.supervisor, &Notice::Placed.encode(), &[work.as_fd()])
        .at("hand over the work directory")?;
    drop(work);

    let supervisor = init.supervisor;
    let started = SharedNumber::new().at("share a clock with the program")?;
    let prepared = prepare(init, SharedNumber::clone(&started))?;
    // From here on the program could look at init: it finds nothing to hold on to.
    set_dumpable_behavior(DumpableBehavior::NotDumpable).at("make init undumpable")?;
    // SAFETY: this process is a copy of a single-threaded one and has started no thread.
    let child = match unsafe { syscall::clone_process(0, None) }.at("clone the program")? {
        Cloned::Child => {
            let error = program::become_program(prepared, supervisor);
            let _ = socket::send(supervisor, &Notice::Failed(error).encode(), &[]);
            syscall::exit_now(127)
        }
        Cloned::Parent(pid, _) => pid,
    };
    drop(prepared);
    // Signalling the program's other id is all that is left to do.
    capabilities::keep_only(CapabilitySet::KILL).at("drop init's capabilities")?;
    let started = || Duration::from_nanos(started.get().load(Ordering::Relaxed)) + clock;
    let exit = watch(child, &signals, started, walls);
    let after = counters.as_ref().map(IoCounters::read).unwrap_or_default();
    let exit = ExitNotice {
        read_bytes: after.0.saturating_sub(before.0),
        written_bytes: after.1.saturating_sub(before.1),
        ..exit
    };
    socket::send(supervisor, &Notice::Exited(exit).encode(), &[]).at("tell the end")
}

/// The walls and contents that only a process inside can make.
fn build(init: &Init<'_>) -> Result<(), StepError> {
    let walls = init.config.walls;
    rustix::process::umask(Mode::empty());
    place::own_root_for(&init.order.volumes)?;
    place::mount_proc(walls)?;
    place::mount_writable(&init.order, walls)?;
    place::mount_volumes(&init.order.volumes, &init.volumes)?;
    place::write_files(&init.order)?;
    if walls.has(Protection::UtsNamespace) {
        rustix::system::sethostname(b"sandbox").at("set the host name")?;
    }
    if walls.has(Protection::Keyring) {
        match syscall::join_new_session_keyring() {
            // A kernel without keyrings has none to share.
            Ok(()) | Err(Errno::NOSYS) => {}
            Err(error) => return Err(error).at("start a session keyring"),
        }
    }
    if init.order.loopback {
        loopback::bring_up().at("bring loopback up")?;
    }
    let mut more = 0;
    // The cgroup namespace begins at the cgroup this process is in by now; the time namespace is for
    // the next child.
    if walls.has(Protection::CgroupNamespace) {
        more |= syscall::NEW_CGROUP;
    }
    if walls.has(Protection::TimeNamespace) {
        more |= syscall::NEW_TIME;
    }
    syscall::unshare(more).at("enter cgroup and time namespaces")
}

fn prepare(init: Init<'_>, started: SharedNumber) -> Result<Program, StepError> {
    let walls = init.config.walls;
    let text = |text: &str| {
        // Requests with zero bytes were refused when they were made.
        std::ffi::CString::new(text)
            .map_err(|_| Errno::INVAL)
            .at("read the order")
    };
    let argv = init
        .order
        .argv
        .iter()
        .map(|arg| text(arg))
        .collect::<Result<Vec<_>, _>>()?;
    let envp = init
        .order
        .env
        .iter()
        .map(|pair| text(pair))
        .collect::<Result<Vec<_>, _>>()?;
    let path = argv
        .first()
        .cloned()
        .ok_or(Errno::INVAL)
        .at("read the order")?;
    let directory = match init.order.directory {
        "" => text(place::WORK)?,
        directory => text(&format!("{}/{directory}", place::WORK))?,
    };
    let rules = if walls.has(Protection::Landlock) {
        let writable_volumes = init.order.volumes.iter().filter(|volume| volume.writable);
        let mut writable: Vec<&str> = place::WRITABLE.to_vec();
        writable.extend(writable_volumes.map(|volume| volume.destination));
        Some(crate::landlock::prepare(
            &writable,
            crate::template::DEVICES,
        )?)
    } else {
        None
    };
    Ok(Program {
        walls,
        argv: CArray::new(argv),
        envp: CArray::new(envp),
        path,
        directory,
        streams: init.streams,
        rlimits: rlimits::decode(&init.order.rlimits)?,
        cores: init.order.cores,
        rules,
        filter: crate::seccomp::Program::from_bytes(&init.config.filter)
            .map(|program| program.instructions)
            .map_err(|_| Errno::INVAL)
            .at("read the system-call filter")?,
        filter_notifies: init.config.filter_notifies,
        has_own_ids: init.has_own_ids,
        started,
        filtered_notice: program::filtered_notice(),
    })
}

/// Waits for the program's end, then for everything it left behind.
fn watch(
    program: Pid,
    signals: &libc::sigset_t,
    started: impl Fn() -> Duration,
    walls: Walls,
) -> ExitNotice {
    let mut exit = ExitNotice::default();
    let mut ended = false;
    while !ended {
        match syscall::next_signal(signals) {
            libc::SIGCHLD => ended = reap(program, &mut exit),
            signal if signal == syscall::end_everything_signal() => kill_all(program, walls),
            signal => {
                // The program's own group gets what a terminal would have sent it.
                if let Some(signal) = Signal::from_named_raw(signal) {
                    let _ = kill_process_group(program, signal);
                }
            }
        }
    }
    let wall = Duration::from_nanos(clock::monotonic_nanos()).saturating_sub(started());
    exit.wall_nanos = u64::try_from(wall.as_nanos()).unwrap_or(u64::MAX);
    kill_all(program, walls);
    // Waiting for each is what adds their CPU time and I/O to ours, where it can be read.
    while rustix::process::wait(WaitOptions::empty()).is_ok() {}
    let children = syscall::cpu_times(Whose::Children);
    let own = syscall::cpu_times(Whose::Mine);
    exit.user_micros = children.user_micros;
    exit.system_micros = children.system_micros;
    exit.largest_kib = children.largest_kib;
    exit.init_user_micros = own.user_micros;
    exit.init_system_micros = own.system_micros;
    exit
}

/// Takes everything that has ended; true once the program itself is among it.
fn reap(program: Pid, exit: &mut ExitNotice) -> bool {
    let mut ended = false;
    while let Ok(Some((pid, status))) = rustix::process::wait(WaitOptions::NOHANG) {
        if pid == program {
            exit.code = status.exit_status();
            exit.signal = status.terminating_signal();
            ended = true;
        }
    }
    ended
}

/// Ends every process of the sandbox but this one.
fn kill_all(program: Pid, walls: Walls) {
    if walls.has(Protection::PidNamespace) {
        // As process 1 of a namespace, "everything" is everything in it and nothing else.
        // SAFETY: kill takes two numbers.
        unsafe { libc::kill(-1, libc::SIGKILL) };
    } else {
        // Without the namespace that would reach the host: only the program's own group.
        let _ = kill_process_group(program, Signal::KILL);
    }
}

/// Bytes that went through read and write calls of this process and all children it waited for.
struct IoCounters(File);

impl IoCounters {
    /// Opened while this process may still look at itself; the open file goes on telling.
    fn open() -> Option<Self> {
        File::open("/proc/self/io").ok().map(Self)
    }

    fn read(&self) -> (u64, u64) {
        let mut text = [0; 512];
        let length = self.0.read_at(&mut text, 0).unwrap_or(0);
        let text = String::from_utf8_lossy(&text[..length]);
        let value = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name))?;
            line.trim().parse().ok()
        };
        (value("rchar:").unwrap_or(0), value("wchar:").unwrap_or(0))
    }
}
