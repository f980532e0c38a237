//! The first process of a sandbox. It builds everything that does not depend on the program, waits for
//! an order, places the program's files, starts it, reaps everything that dies, passes signals on, and
//! tells the supervisor how it ended.
//!
//! It is the only process of ours inside. It cannot be debugged or signalled by the program: it has
//! another id (where there are ids to give), is not dumpable, and is process 1 of the namespace.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::sync::atomic::Ordering;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{
    DumpableBehavior, Pid, Signal, WaitOptions, kill_process_group, set_dumpable_behavior,
    set_parent_process_death_signal,
};
use rustix::thread::{CapabilitySet, Gid, Uid};
use sandbox_core::Protection;

use crate::capabilities;
use crate::clock;
use crate::ids::Ids;
use crate::landlock::Rules;
use crate::loopback;
use crate::mapped::MappedFile;
use crate::order::{Config, ExitNotice, Notice, Order, STREAMS};
use crate::overlay;
use crate::own_root;
use crate::place::{self, DiskSize};
use crate::program::{self, Program};
use crate::rlimits;
use crate::seccomp;
use crate::socket::{self, Message};
use crate::step::{AtStep, StepError};
use crate::syscall::{self, CArray, ChildStack, SharedNumber, Whose};
use crate::template;
use crate::walls::Walls;

/// What init gets from the slot it was copied from.
pub(crate) struct Init<'a> {
    pub(crate) config: &'a Config,
    pub(crate) supervisor: BorrowedFd<'a>,
    pub(crate) launcher: BorrowedFd<'a>,
}

/// What is built before there is an order.
struct Prepared {
    ids: Ids,
    rules: Option<Rules>,
    filter: Vec<libc::sock_filter>,
    counters: Option<IoCounters>,
    /// Where copies of what is shown copy-on-write go.
    copies: OwnedFd,
    stack: ChildStack,
    started: SharedNumber,
    signals: libc::sigset_t,
}

/// Runs to the end of the sandbox.
pub(crate) fn run(init: &Init<'_>) -> ! {
    if let Err(error) = try_run(init) {
        // If even this cannot be told, the supervisor sees the socket close.
        let _ = socket::send(init.supervisor, &Notice::Failed(error).encode(), &[]);
    }
    syscall::exit_now(0)
}

fn try_run(init: &Init<'_>) -> Result<(), StepError> {
    let prepared = prepare(init)?;
    let work = rustix::fs::open(
        place::WORK,
        OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )
    .at("open the work directory")?;
    let ready = Notice::Ready { owner: prepared.ids.owner() };
    socket::send(init.supervisor, &ready.encode(), &[work.as_fd()]).at("say that init is ready")?;
    drop(work);
    match socket::receive(init.supervisor).at("wait for an order")? {
        Some(message) => carry_out(init, prepared, message),
        None => Ok(()),
    }
}

/// Builds every wall that can stand before the program is known.
fn prepare(init: &Init<'_>) -> Result<Prepared, StepError> {
    let walls = init.config.walls;
    let signals = syscall::block_all_signals().at("block signals")?;
    set_parent_process_death_signal(Some(Signal::KILL)).at("bind init's life to its slot")?;
    let ids = take_ids(init.launcher)?;
    // Once more, because changing ids clears it.
    set_parent_process_death_signal(Some(Signal::KILL)).at("bind init's life to its slot")?;
    // Changing ids made this process undumpable, and one like that may not look at its own files in
    // /proc. No other process is here yet that could make use of the moment.
    set_dumpable_behavior(DumpableBehavior::Dumpable).at("look at init's own files")?;
    rustix::process::umask(Mode::empty());
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
    place::mount_proc(walls)?;
    place::mount_terminals()?;
    let copies = place::mount_writable(default_size(init.config), walls)?;
    if walls.has(Protection::CgroupNamespace) {
        // It begins at the cgroup this process is in by now.
        syscall::unshare(syscall::NEW_CGROUP).at("enter a cgroup namespace")?;
    }
    if walls.has(Protection::Capabilities) {
        // For the program, which inherits it; what init itself holds is not touched.
        capabilities::lock_out().at("lock capabilities out")?;
    }
    let counters = IoCounters::open();
    let rules = if walls.has(Protection::Landlock) { Some(rules()?) } else { None };
    // From here on a program could look at init: it finds nothing to hold on to.
    set_dumpable_behavior(DumpableBehavior::NotDumpable).at("make init undumpable")?;
    let filter = seccomp::Program::from_bytes(&init.config.filter);
    Ok(Prepared {
        ids,
        rules,
        filter: filter.map_err(|_| Errno::INVAL).at("read the filter")?.instructions,
        counters,
        copies,
        stack: ChildStack::new().at("make a stack for the program's start")?,
        started: SharedNumber::default(),
        signals,
    })
}

/// Waits until the launcher has mapped our ids, and takes those that may make files.
fn take_ids(launcher: BorrowedFd<'_>) -> Result<Ids, StepError> {
    let answer = socket::receive(launcher).at("wait for ids")?;
    let ids = answer.and_then(|message| Ids::decode(&message.bytes));
    let ids = ids.ok_or(Errno::PERM).at("get ids from the launcher")?;
    if let Ids::Range(_) = ids {
        let (uid, gid) = (Uid::from_raw(0), Gid::from_raw(0));
        rustix::thread::set_thread_groups(&[]).at("leave all groups")?;
        rustix::thread::set_thread_res_gid(gid, gid, gid).at("take group 0")?;
        rustix::thread::set_thread_res_uid(uid, uid, uid).at("take user 0")?;
    }
    Ok(ids)
}

fn rules() -> Result<Rules, StepError> {
    let mut rules = Rules::new()?;
    rules.allow_reading("/")?;
    for path in place::WRITABLE {
        rules.allow_writing(path)?;
    }
    for path in template::DEVICES {
        rules.allow_device(path)?;
    }
    for path in [place::TERMINALS, template::OWN_TERMINAL] {
        rules.allow_terminals(path)?;
    }
    Ok(rules)
}

fn default_size(config: &Config) -> DiskSize {
    DiskSize { bytes: config.disk_bytes, inodes: config.disk_inodes }
}

fn carry_out(init: &Init<'_>, mut prepared: Prepared, message: Message) -> Result<(), StepError> {
    let mut descriptors = message.descriptors.into_iter();
    let file = descriptors.next().ok_or(Errno::PROTO).at("read the order")?;
    let streams: Vec<OwnedFd> = descriptors.by_ref().take(STREAMS).collect();
    let streams = <[OwnedFd; STREAMS]>::try_from(streams);
    let streams = streams.map_err(|_| Errno::PROTO).at("read the order")?;
    let mapped = MappedFile::new(file.as_fd()).at("map the order")?;
    let order = Order::decode(mapped.bytes()).map_err(|_| Errno::PROTO).at("read the order")?;
    let has_content = order.workspace.is_some_and(|workspace| workspace.has_content);
    let content = if has_content { descriptors.next() } else { None };
    let mut volumes: Vec<OwnedFd> = descriptors.collect();
    place(init, &order, content, &mut volumes, &mut prepared)?;
    drop(volumes);
    if order.gate_port != 0 {
        let gate = loopback::listen_on(order.gate_port).at("listen on loopback")?;
        socket::send(init.supervisor, &Notice::Gate.encode(), &[gate.as_fd()])
            .at("hand the gate over")?;
    }

    let walls = init.config.walls;
    let (signals, counters) = (prepared.signals, prepared.counters.take());
    let started = prepared.started.clone();
    let before = counters.as_ref().map(IoCounters::read).unwrap_or_default();
    let own_before = syscall::cpu_times(Whose::Mine);
    let mut program = program(init, &order, streams, &mut prepared)?;
    let supervisor = init.supervisor;
    // Shares our memory until it execs: nothing has to be copied, and this process waits meanwhile.
    // SAFETY: this process has one thread, and the closure ends in exec or exit.
    let child = unsafe {
        prepared.stack.clone_sharing_memory(&mut || {
            let error = program::become_program(&mut program, supervisor);
            let _ = socket::send(supervisor, &Notice::Failed(error).encode(), &[]);
            syscall::exit_now(127)
        })
    };
    let child = child.at("clone the program")?;
    // The program's streams are still open here too, and must not stay so.
    drop(program);
    // Signalling the program's other id is all that is left to do.
    capabilities::keep_only(CapabilitySet::KILL).at("drop init's capabilities")?;
    let exit = watch(child, &signals, &started, walls);
    let after = counters.as_ref().map(IoCounters::read).unwrap_or_default();
    let exit = ExitNotice {
        read_bytes: after.0.saturating_sub(before.0),
        written_bytes: after.1.saturating_sub(before.1),
        init_user_micros: exit.init_user_micros.saturating_sub(own_before.user_micros),
        init_system_micros: exit.init_system_micros.saturating_sub(own_before.system_micros),
        ..exit
    };
    socket::send(supervisor, &Notice::Exited(exit).encode(), &[]).at("tell the end")
}

/// What depends on the order: sizes, workspace, volumes, files, loopback.
fn place(
    init: &Init<'_>,
    order: &Order<'_>,
    content: Option<OwnedFd>,
    volumes: &mut [OwnedFd],
    prepared: &mut Prepared,
) -> Result<(), StepError> {
    let walls = init.config.walls;
    let size = DiskSize { bytes: order.disk_bytes, inodes: order.disk_inodes };
    if size != default_size(init.config) {
        place::resize_writable(size, walls)?;
    }
    if let Some(workspace) = order.workspace {
        // Before the volumes, which may lie in it.
        let work = place::mount_workspace(workspace, content, walls)?;
        socket::send(init.supervisor, &Notice::Workspace.encode(), &[work.as_fd()])
            .at("hand the workspace over")?;
        if let Some(rules) = &mut prepared.rules {
            rules.allow_writing(place::WORK)?;
        }
    }
    if !order.volumes.is_empty() {
        for (number, volume) in order.volumes.iter().enumerate() {
            if volume.copy_on_write {
                // While the room for copies is still part of this mount namespace.
                overlay::cover(&mut volumes[number], &prepared.copies, number)?;
            }
        }
        own_root::make_for(&order.volumes)?;
        place::mount_volumes(&order.volumes, volumes)?;
        if let Some(rules) = &mut prepared.rules {
            // The root may be another one now.
            rules.allow_reading("/")?;
            for volume in order.volumes.iter().filter(|volume| volume.writable) {
                rules.allow_writing(volume.destination)?;
            }
        }
    }
    rustix::process::umask(Mode::empty());
    place::write_files(order)?;
    if order.loopback {
        loopback::bring_up().at("bring loopback up")?;
    }
    Ok(())
}

fn program(
    init: &Init<'_>,
    order: &Order<'_>,
    streams: [OwnedFd; STREAMS],
    prepared: &mut Prepared,
) -> Result<Program, StepError> {
    let text = |text: &str| {
        // Requests with zero bytes were refused when they were made.
        std::ffi::CString::new(text).map_err(|_| Errno::INVAL).at("read the order")
    };
    let argv = order.argv.iter().map(|arg| text(arg)).collect::<Result<Vec<_>, _>>()?;
    let envp = order.env.iter().map(|pair| text(pair)).collect::<Result<Vec<_>, _>>()?;
    let path = argv.first().cloned().ok_or(Errno::INVAL).at("read the order")?;
    let directory = match order.directory {
        "" => text(place::WORK)?,
        directory => text(&format!("{}/{directory}", place::WORK))?,
    };
    Ok(Program {
        walls: init.config.walls,
        argv: CArray::new(argv),
        envp: CArray::new(envp),
        path,
        directory,
        streams,
        rlimits: rlimits::decode(&order.rlimits)?,
        cores: order.cores,
        rules: prepared.rules.take(),
        filter: std::mem::take(&mut prepared.filter),
        filter_notifies: init.config.filter_notifies,
        has_own_ids: matches!(prepared.ids, Ids::Range(_)),
        started: prepared.started.clone(),
        starting: Notice::Starting.encode(),
    })
}

/// Waits for the program's end, then for everything it left behind.
fn watch(
    program: Pid,
    signals: &libc::sigset_t,
    started: &SharedNumber,
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
    let started = started.get().load(Ordering::Relaxed);
    exit.wall_nanos = clock::monotonic_nanos().saturating_sub(started);
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
