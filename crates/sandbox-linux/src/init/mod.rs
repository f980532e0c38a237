//! The first process of a sandbox. It builds everything that does not depend on the program, waits for
//! an order, places the program's files, starts it, reaps everything that dies, passes signals on, and
//! tells the supervisor how it ended.
//!
//! It is the only process of ours inside. It cannot be debugged or signalled by the program: it has
//! another id (where there are ids to give), is not dumpable, and is process 1 of the namespace.

mod carry_out;
mod figures;
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

use crate::Walls;
use crate::capabilities;
use crate::config::Config;
use crate::exec_message::ExecMessage;
use crate::ids::Ids;
use crate::landlock::Rules;
use crate::place::{self, DiskSize};
use crate::private_root::PrivateRoot;
use crate::program::Confinement;
use crate::seccomp;
use crate::socket;
use crate::step::{AtStep, StepError};
use crate::streams::Streams;
use crate::stub::Stub;
use crate::syscall::{self, SharedNumber};
use crate::template;
use figures::{Before, IoCounters};

/// Event loops and file watchers take one each. The kernel's default limit for a user is 128.
const MAX_INOTIFY_INSTANCES: &str = "32";
/// Enough for a project with its dependencies.
const MAX_INOTIFY_WATCHES: &str = "16384";

/// What init gets from the launcher it was copied from.
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

/// What is built before there is an order.
struct Prepared {
    ids: Ids,
    rules: Option<Rules>,
    filter: Vec<libc::sock_filter>,
    counters: Option<IoCounters>,
    /// The template's root, if a private one covers it: toolchains that an overlay is to cover are attached there.
    template: Option<OwnedFd>,
    /// Where copies of what is shown copy-on-write go.
    copies: OwnedFd,
    started: SharedNumber,
    signals: libc::sigset_t,
}

/// Runs to the end of the sandbox.
pub(crate) fn run(init: &Init<'_>, streams: Streams, root: Option<PrivateRoot<'_>>) -> ! {
    if let Err(error) = try_run(init, streams, root) {
        // If even this cannot be told, the supervisor sees the socket close.
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
            // Kept here too, for an order that needs other rules.
            let rules = prepared.rules.as_ref().map(Rules::share).transpose()?;
            let mut confinement = prepared.confinement(init, &streams, rules);
            let orders = streams.orders.as_fd();
            Some(Stub::make(&mut confinement, &prepared.started, orders, supervisor)?)
        }
        SlotKind::Waiting | SlotKind::Adopting => None,
    };
    let rules = match init.kind {
        SlotKind::Adopting => prepared.rules.take().and_then(Rules::into_fd),
        _ => None,
    };
    let work = rustix::fs::open(
        place::WORK,
        OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )
    .at("open the work directory")?;
    watch::rehearse(prepared.counters.as_ref());
    let before = Before::now(prepared.counters.as_ref(), None);
    let ready = Notice::Ready { owner: prepared.ids.owner() };
    let mut handed_out = vec![work.as_fd()];
    handed_out.extend(rules.as_ref().map(AsFd::as_fd));
    socket::send(supervisor, &ready.encode(), &handed_out).at("say that init is ready")?;
    drop((work, rules));
    if let Some(stub) = stub
        && is_over_already(supervisor, &prepared.signals)?
    {
        return carry_out::see_through(init, &prepared, stub, streams, &before);
    }
    match socket::receive(supervisor).at("wait for an order")? {
        Some(message) if InitMessage::decode(&message.bytes) == Ok(InitMessage::ExecSentToStub) => {
            match stub {
                Some(stub) => carry_out::see_through(init, &prepared, stub, streams, &before),
                None => Err(Errno::PROTO).at("decode the request"),
            }
        }
        Some(message) => {
            let message = ExecMessage::open(message)?;
            carry_out::carry_out(init, prepared, stub, streams, message)
        }
        None => Ok(()),
    }
}

/// Waits for a word from the supervisor, and says whether a child's end came first: a short program may be
/// over before anybody had the time to tell us that it was begun.
fn is_over_already(
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
            // The signal stays where it is.
            Ok(_) => return Ok(watched[0].revents().is_empty()),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error).at("wait for an order"),
        }
    }
}

impl Prepared {
    fn confinement<'a>(
        &'a self,
        init: &Init<'_>,
        streams: &'a Streams,
        rules: Option<Rules>,
    ) -> Confinement<'a> {
        let Streams { stdin, stdout, stderr, .. } = streams;
        Confinement {
            walls: init.config.walls,
            streams: [stdin.as_fd(), stdout.as_fd(), stderr.as_fd()],
            rules,
            filter: &self.filter,
            filter_notifies: init.config.filter_notifies,
            has_own_ids: matches!(self.ids, Ids::Range(_)),
        }
    }
}

/// Builds every wall that can stand before the program is known.
fn prepare(init: &Init<'_>, root: Option<PrivateRoot<'_>>) -> Result<Prepared, StepError> {
    let walls = init.config.walls;
    let signals = syscall::block_all_signals().at("block signals")?;
    set_parent_process_death_signal(Some(Signal::KILL)).at("bind init's life to the launcher")?;
    for entry in &init.entries {
        // Zero means the writer itself. What it may do was decided when the file was opened.
        rustix::io::write(entry, b"0").at("join a cgroup")?;
    }
    let ids = take_ids(init.launcher.as_fd())?;
    // Once more, because changing ids clears it.
    set_parent_process_death_signal(Some(Signal::KILL)).at("bind init's life to the launcher")?;
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
    if walls.has(Protection::Rlimits) {
        bound_inotify()?;
    }
    let template = root.map(PrivateRoot::enter).transpose()?;
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
    let rules = if walls.has(Protection::Landlock) { Some(rules(walls)?) } else { None };
    // From here on a program could look at init: it finds nothing to hold on to.
    set_dumpable_behavior(DumpableBehavior::NotDumpable).at("make init undumpable")?;
    let filter = seccomp::Program::from_bytes(&init.config.filter);
    Ok(Prepared {
        ids,
        rules,
        filter: filter.map_err(|_| Errno::INVAL).at("read the filter")?.instructions,
        counters,
        template,
        copies,
        started: SharedNumber::new().at("make a place for the time of the start")?,
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

/// Bounds what the kernel counts for each user namespace. It counts it for the owner of this one too, whose own limit some
/// sandboxes may share.
fn bound_inotify() -> Result<(), StepError> {
    for (name, limit) in [("instances", MAX_INOTIFY_INSTANCES), ("watches", MAX_INOTIFY_WATCHES)] {
        // The template's /proc, which a sandbox's own covers later.
        std::fs::write(format!("/proc/sys/user/max_inotify_{name}"), limit)
            .at(&format!("bound the number of inotify {name}"))?;
    }
    Ok(())
}

fn rules(walls: Walls) -> Result<Rules, StepError> {
    let mut rules = Rules::new(walls)?;
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
