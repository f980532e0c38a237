//! A slot: the parent of one sandbox, and what makes it possible to prepare one ahead of time.
//!
//! It joins the cgroups, enters the template's mounts and clones init into new namespaces of every
//! kind. From then on it only waits: for init's end, to tell it, or for the supervisor's, to bring it
//! about. All this happens before there is anything to run, because joining a cgroup after idleness
//! takes milliseconds and making a network namespace most of one. A slot is never used twice.

use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{
    DumpableBehavior, Pid, Signal, WaitId, WaitIdOptions, getppid, pidfd_send_signal,
    set_dumpable_behavior, set_parent_process_death_signal, waitid,
};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use sandbox_core::Protection;

use crate::clock;
use crate::ids::Ids;
use crate::init::{self, Init};
use crate::order::{Config, Notice};
use crate::socket;
use crate::step::{AtStep, StepError};
use crate::syscall::{self, CloneFlags, Cloned};

/// What a slot gets from the launcher it was copied from.
pub(crate) struct Slot<'a> {
    pub(crate) config: &'a Config,
    /// To the supervisor.
    pub(crate) supervisor: OwnedFd,
    /// To the launcher, which maps the ids.
    pub(crate) launcher: OwnedFd,
    /// Files to write "0" to, to join a cgroup.
    pub(crate) entries: Vec<OwnedFd>,
    pub(crate) template: BorrowedFd<'a>,
}

/// Runs to the end of the slot.
pub(crate) fn run(slot: &Slot<'_>) -> ! {
    if let Err(error) = try_run(slot) {
        let _ = socket::send(slot.supervisor.as_fd(), &Notice::Failed(error).encode(), &[]);
    }
    syscall::exit_now(0)
}

fn try_run(slot: &Slot<'_>) -> Result<(), StepError> {
    let launcher = getppid();
    set_parent_process_death_signal(Some(Signal::KILL)).at("bind a slot's life to the launcher")?;
    if getppid() != launcher {
        // It died before that was set.
        return Ok(());
    }
    for entry in &slot.entries {
        // Zero means the writer itself.
        rustix::io::write(entry, b"0").at("join a cgroup")?;
    }
    if slot.config.walls.has(Protection::TimeNamespace) {
        // While the host's /proc is still in sight, through which the offsets are set.
        syscall::unshare(syscall::NEW_TIME).at("enter a time namespace")?;
        clock::start_at_zero().at("start the clocks of the time namespace")?;
    }
    move_into_link_name_space(slot.template, Some(LinkNameSpaceType::Mount))
        .at("enter the template's mounts")?;
    // SAFETY: a slot is a copy of the single-threaded launcher and starts no thread.
    match unsafe { syscall::clone_process(clone_flags(slot.config), None) }.at("clone init")? {
        Cloned::Child => init::run(&Init {
            config: slot.config,
            supervisor: slot.supervisor.as_fd(),
            launcher: slot.launcher.as_fd(),
        }),
        Cloned::Parent(pid, init) => {
            // Not before: init would have inherited it, and could not be given its ids.
            set_dumpable_behavior(DumpableBehavior::NotDumpable).at("make a slot undumpable")?;
            let supervisor = slot.supervisor.as_fd();
            socket::send(supervisor, &Notice::Cloned.encode(), &[init.as_fd()])
                .at("say that init runs")?;
            let request = pid.as_raw_nonzero().get().to_le_bytes();
            socket::send(slot.launcher.as_fd(), &request, &[]).at("ask for init's ids")?;
            outlive(supervisor, &init)
        }
    }
}

fn clone_flags(config: &Config) -> CloneFlags {
    let kinds = [
        (Protection::PidNamespace, syscall::NEW_PID),
        (Protection::NetNamespace, syscall::NEW_NET),
        (Protection::IpcNamespace, syscall::NEW_IPC),
        (Protection::UtsNamespace, syscall::NEW_UTS),
    ];
    // The first of these owns the others. Mounts are made anew in every case: without that, one
    // sandbox would change the template of all.
    let mut flags = syscall::NEW_USER | syscall::NEW_MOUNT;
    for (wall, flag) in kinds {
        if config.walls.has(wall) {
            flags |= flag;
        }
    }
    flags
}

/// Waits for init's end, and brings it about if the supervisor is gone. When init is reaped, every
/// process of its namespace is dead: the kernel sees to that before it lets go of process 1.
fn outlive(supervisor: BorrowedFd<'_>, init: &OwnedFd) -> Result<(), StepError> {
    loop {
        let mut watched = [
            PollFd::new(init, PollFlags::IN),
            PollFd::from_borrowed_fd(supervisor, PollFlags::empty()),
        ];
        match poll(&mut watched, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error).at("wait for init"),
        }
        if !watched[0].revents().is_empty() {
            break;
        }
        if watched[1].revents().contains(PollFlags::HUP) {
            let _ = pidfd_send_signal(init, Signal::KILL);
        }
    }
    waitid(WaitId::PidFd(init.as_fd()), WaitIdOptions::EXITED).at("reap init")?;
    // A supervisor that is gone does not mind.
    let _ = socket::send(supervisor, &Notice::Gone.encode(), &[]);
    Ok(())
}

/// Writes the id maps of an init; done by the launcher, whose namespace the ids belong to and whose
/// `/proc` shows the process.
pub(crate) fn write_id_maps(init: Pid, ids: Ids) -> Result<(), StepError> {
    for name in ["uid_map", "gid_map"] {
        let path = format!("/proc/{init}/{name}");
        let file = std::fs::OpenOptions::new().write(true).open(path);
        let mut file = file.at("open the id map of a sandbox")?;
        file.write_all(ids.map().as_bytes()).at("write the id map of a sandbox")?;
    }
    Ok(())
}
