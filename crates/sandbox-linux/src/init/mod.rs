//! Init, the first process of a sandbox. It sets up everything that does not depend on the program,
//! waits for an exec request, places the program's files, starts it, reaps all processes, forwards
//! signals, and reports the exit to the supervisor.
//!
//! It is the only trusted process inside. The program can neither debug nor signal it: init has
//! another user ID (if there are IDs to assign), is not dumpable, and is process 1 of the
//! namespace.

mod children;
mod common_files;
mod exec;
mod instance;
mod usage;
mod watch;

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{
    DumpableBehavior, Signal, set_dumpable_behavior, set_parent_process_death_signal,
};
use rustix::thread::{Gid, Uid};
use sandbox_core::Protection;
use sandbox_protocol::Message as _;
use sandbox_protocol::exec::InitMessage;
use sandbox_protocol::launcher::SlotKind;
use sandbox_protocol::notice::Notice;

use crate::ProtectionSet;
use crate::capabilities;
use crate::config::Config;
use crate::exec_message::ExecMessage;
use crate::ids::Ids;
use crate::ipc_limits;
use crate::landlock::Rules;
use crate::private_root::PrivateRoot;
use crate::program::{Confinement, Paths};
use crate::rootfs::{self, DiskSize};
use crate::seccomp;
use crate::socket;
use crate::step::{AtStep, StepError};
use crate::streams::Streams;
use crate::stub::Stub;
use crate::syscall::{self, SharedNumber};
use crate::template;
use usage::{Baseline, IoCounters};

/// Event loops and file watchers use one each. The kernel's default limit for a user is 128.
const MAX_INOTIFY_INSTANCES: &str = "32";
/// Enough for a project with its dependencies.
const MAX_INOTIFY_WATCHES: &str = "16384";

/// What init gets from the launcher.
pub(crate) struct Init<'a> {
    pub(crate) config: &'a Config,
    pub(crate) kind: SlotKind,
    pub(crate) supervisor: OwnedFd,
    pub(crate) launcher: OwnedFd,
    /// Files to write "0" to, to join a cgroup.
    pub(crate) entries: Vec<OwnedFd>,
    /// `/proc/sys/net`.
    pub(crate) network_settings: BorrowedFd<'a>,
}

/// Everything set up before the request.
struct Prepared {
    ids: Ids,
    rules: Option<Rules>,
    filter: Vec<libc::sock_filter>,
    counters: Option<IoCounters>,
    /// The template's root, if a private one covers it: toolchains are attached there before an
    /// overlay covers them.
    template: Option<OwnedFd>,
    /// Upper layers of copy-on-write trees.
    upper_layers: OwnedFd,
    started: SharedNumber,
    signals: libc::sigset_t,
}

/// Runs until the end of the sandbox.
pub(crate) fn run(init: &Init<'_>, streams: Streams, root: Option<PrivateRoot<'_>>) -> ! {
    if let Err(error) = try_run(init, streams, root) {
        // If this fails too, the supervisor notices the closed socket.
        let _ = socket::send(init.supervisor.as_fd(), &Notice::Failed(error.into()).encode(), &[]);
    }
    syscall::exit_now(0)
}

fn try_run(
    init: &Init<'_>,
    streams: Streams,
    root: Option<PrivateRoot<'_>>,
) -> Result<(), StepError> {
    let supervisor = init.supervisor.as_fd();
    let mut prepared = prepare(init, root)?;
    let stub = match init.kind {
        SlotKind::Any => {
            // Also kept here, for a request that adds rules.
            let rules = prepared.rules.as_ref().map(Rules::share).transpose()?;
            let mut confinement = prepared.confinement(init, streams.of_program(), rules);
            let requests = streams.requests.as_fd();
            Some(Stub::make(&mut confinement, &prepared.started, requests, supervisor)?)
        }
        SlotKind::Waiting | SlotKind::Adopting => None,
    };
    let rules = match init.kind {
        SlotKind::Adopting => prepared.rules.take().and_then(Rules::into_fd),
        _ => None,
    };
    let work = rustix::fs::open(
        rootfs::WORK,
        OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )
    .at("open the work directory")?;
    watch::prefault(prepared.counters.as_ref());
    let before = Baseline::now(prepared.counters.as_ref(), None);
    let ready = Notice::Ready { owner: prepared.ids.owner() };
    let mut handed_out = vec![work.as_fd()];
    handed_out.extend(rules.as_ref().map(AsFd::as_fd));
    socket::send(supervisor, &ready.encode(), &handed_out).at("report that init is ready")?;
    drop((work, rules));
    if prepared.template.is_some() && init.kind == SlotKind::Any {
        common_files::look_up();
    }
    if let Some(stub) = stub
        && has_child_exited(supervisor, &prepared.signals)?
    {
        return exec::watch_stub(init, &prepared, stub, streams, &before);
    }
    match socket::receive(supervisor).at("wait for a request")? {
        Some(message) if InitMessage::decode(&message.bytes) == Ok(InitMessage::ExecSentToStub) => {
            match stub {
                Some(stub) => exec::watch_stub(init, &prepared, stub, streams, &before),
                None => Err(Errno::PROTO).at("decode the request"),
            }
        }
        Some(message) => {
            let message = ExecMessage::open(message)?;
            exec::handle_exec(init, prepared, stub, streams, message)
        }
        None => Ok(()),
    }
}

/// Waits for a message from the supervisor, and returns whether a child exited first: a short
/// program may end before the message arrives that it was started.
fn has_child_exited(
    supervisor: BorrowedFd<'_>,
    signals: &libc::sigset_t,
) -> Result<bool, StepError> {
    let children = syscall::signal_descriptor(signals).at("listen to signals")?;
    let mut watched = [
        PollFd::from_borrowed_fd(supervisor, PollFlags::IN),
        PollFd::new(&children, PollFlags::IN),
    ];
    loop {
        match poll(&mut watched, None) {
            // The signal stays queued.
            Ok(_) => return Ok(watched[0].revents().is_empty()),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error).at("wait for a request"),
        }
    }
}

impl Prepared {
    fn confinement<'a>(
        &'a self,
        init: &Init<'_>,
        streams: [BorrowedFd<'a>; 3],
        rules: Option<Rules>,
    ) -> Confinement<'a> {
        Confinement {
            protections: init.config.protections,
            streams,
            rules,
            filter: &self.filter,
            filter_notifies: init.config.filter_notifies,
            has_own_ids: matches!(self.ids, Ids::Range(_)),
            paths: Paths::Trusted,
        }
    }
}

/// Sets up all isolation that does not depend on the program.
fn prepare(init: &Init<'_>, root: Option<PrivateRoot<'_>>) -> Result<Prepared, StepError> {
    let protections = init.config.protections;
    let signals = syscall::block_all_signals().at("block signals")?;
    set_parent_process_death_signal(Some(Signal::KILL))
        .at("set the parent death signal of init")?;
    for entry in &init.entries {
        // Zero means the writing process. Permissions were checked when the file was opened.
        rustix::io::write(entry, b"0").at("join a cgroup")?;
    }
    let ids = take_ids(init.launcher.as_fd())?;
    // Again, because changing IDs clears it.
    set_parent_process_death_signal(Some(Signal::KILL))
        .at("set the parent death signal of init")?;
    // Changing IDs made this process undumpable, which denies access to its own files in /proc. No
    // other process is in the namespace yet that could use this moment.
    set_dumpable_behavior(DumpableBehavior::Dumpable).at("make init dumpable")?;
    rustix::process::umask(Mode::empty());
    if protections.has(Protection::UtsNamespace) {
        rustix::system::sethostname(b"sandbox").at("set the host name")?;
    }
    if protections.has(Protection::Keyring) {
        match syscall::join_new_session_keyring() {
            // A kernel without keyrings has none to share.
            Ok(()) | Err(Errno::NOSYS) => {}
            Err(error) => return Err(error).at("start a session keyring"),
        }
    }
    if protections.has(Protection::Rlimits) {
        bound_inotify()?;
    }
    let has_ipc = [Protection::IpcNamespace, Protection::IpcLimits];
    if has_ipc.into_iter().all(|protection| protections.has(protection)) {
        ipc_limits::set().at("bound System V IPC")?;
    }
    let template = root.map(PrivateRoot::enter).transpose()?;
    rootfs::mount_proc(protections)?;
    rootfs::mount_terminals()?;
    let upper_layers = rootfs::mount_writable(default_size(init.config), protections)?;
    if protections.has(Protection::CgroupNamespace) {
        // Its root is the current cgroup of this process.
        syscall::unshare(syscall::NEW_CGROUP).at("enter a cgroup namespace")?;
    }
    if protections.has(Protection::Capabilities) {
        // For the program, which inherits it; init's own capabilities are not affected.
        capabilities::lock_out().at("lock capabilities out")?;
    }
    let counters = IoCounters::open();
    let rules =
        if protections.has(Protection::Landlock) { Some(rules(protections)?) } else { None };
    // A program could inspect init from here on.
    set_dumpable_behavior(DumpableBehavior::NotDumpable).at("make init undumpable")?;
    let filter = seccomp::Program::from_bytes(&init.config.filter);
    Ok(Prepared {
        ids,
        rules,
        filter: filter.map_err(|_| Errno::INVAL).at("read the filter")?.instructions,
        counters,
        template,
        upper_layers,
        started: SharedNumber::new().at("allocate shared memory for the start time")?,
        signals,
    })
}

/// Waits until the launcher has mapped the IDs, and switches to those that can create files.
fn take_ids(launcher: BorrowedFd<'_>) -> Result<Ids, StepError> {
    let answer = socket::receive(launcher).at("wait for ids")?;
    let ids = answer.and_then(|message| Ids::decode(&message.bytes));
    let ids = ids.ok_or(Errno::PERM).at("get ids from the launcher")?;
    if let Ids::Range(_) = ids {
        let (uid, gid) = (Uid::from_raw(0), Gid::from_raw(0));
        rustix::thread::set_thread_groups(&[]).at("leave all groups")?;
        rustix::thread::set_thread_res_gid(gid, gid, gid).at("switch to group 0")?;
        rustix::thread::set_thread_res_uid(uid, uid, uid).at("switch to user 0")?;
    }
    Ok(ids)
}

/// Limits what the kernel counts for each user namespace. It also counts for the owner of this one,
/// whose limit some sandboxes may share.
fn bound_inotify() -> Result<(), StepError> {
    for (name, limit) in [("instances", MAX_INOTIFY_INSTANCES), ("watches", MAX_INOTIFY_WATCHES)] {
        // The template's /proc, which the sandbox's own covers later.
        std::fs::write(format!("/proc/sys/user/max_inotify_{name}"), limit)
            .at(&format!("bound the number of inotify {name}"))?;
    }
    Ok(())
}

fn rules(protections: ProtectionSet) -> Result<Rules, StepError> {
    let mut rules = Rules::new(protections)?;
    rules.allow_reading("/")?;
    for path in rootfs::WRITABLE {
        rules.allow_writing(path)?;
    }
    for path in template::DEVICES {
        rules.allow_device(path)?;
    }
    for path in [rootfs::TERMINALS, template::OWN_TERMINAL] {
        rules.allow_terminals(path)?;
    }
    Ok(rules)
}

fn default_size(config: &Config) -> DiskSize {
    DiskSize { bytes: config.disk_bytes, inodes: config.disk_inodes }
}
