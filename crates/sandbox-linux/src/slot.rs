//! A slot: a process that waits for one order, already in its cgroups, its user namespace, its empty
//! network namespace and the mount namespace of the template.
//!
//! It exists so that nothing slow lies on the path of a request: joining a cgroup after idleness takes
//! milliseconds, making a network namespace most of one. It takes one order, clones init, waits for
//! init's end, says so and ends. It is never used twice.

use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{
    DumpableBehavior, Signal, WaitId, WaitIdOptions, getppid, pidfd_send_signal,
    set_dumpable_behavior, set_parent_process_death_signal, waitid,
};
use rustix::thread::{Gid, LinkNameSpaceType, Uid, move_into_link_name_space};
use sandbox_core::Protection;

use crate::ids::Ids;
use crate::init::{self, Init};
use crate::mapped::MappedFile;
use crate::order::{Config, Notice, Order, STREAMS};
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
    /// Told by the launcher, because a process cannot see its own id from everywhere.
    pub(crate) is_privileged: bool,
}

/// Runs to the end of the slot.
pub(crate) fn run(slot: &Slot<'_>) -> ! {
    if let Err(error) = try_run(slot) {
        let _ = socket::send(
            slot.supervisor.as_fd(),
            &Notice::Failed(error).encode(),
            &[],
        );
    }
    syscall::exit_now(0)
}

fn try_run(slot: &Slot<'_>) -> Result<(), StepError> {
    let parent = getppid();
    set_parent_process_death_signal(Some(Signal::KILL)).at("bind a slot's life to the launcher")?;
    for entry in &slot.entries {
        // Zero means the writer itself.
        rustix::io::write(entry, b"0").at("join a cgroup")?;
    }
    move_into_link_name_space(slot.template, Some(LinkNameSpaceType::Mount))
        .at("enter the template's mounts")?;
    let ids = enter_user_namespace(slot)?;
    if slot.config.walls.has(Protection::NetNamespace) {
        // Inside the user namespace, so that init may bring its loopback up.
        syscall::unshare(syscall::NEW_NET).at("enter a network namespace")?;
    }
    // Changing ids clears this; and the launcher may have died before it was set.
    set_parent_process_death_signal(Some(Signal::KILL)).at("bind a slot's life to the launcher")?;
    if getppid() != parent {
        return Ok(());
    }
    set_dumpable_behavior(DumpableBehavior::NotDumpable).at("make a slot undumpable")?;
    let ready = Notice::Ready { owner: ids.owner() };
    socket::send(slot.supervisor.as_fd(), &ready.encode(), &[]).at("say that a slot is ready")?;
    let Some(message) = socket::receive(slot.supervisor.as_fd()).at("wait for an order")? else {
        return Ok(());
    };
    carry_out(slot, ids, message)
}

fn enter_user_namespace(slot: &Slot<'_>) -> Result<Ids, StepError> {
    syscall::unshare(syscall::NEW_USER).at("enter a user namespace")?;
    socket::send(slot.launcher.as_fd(), b"map", &[]).at("ask for ids")?;
    let answer = socket::receive(slot.launcher.as_fd()).at("wait for ids")?;
    let first = answer.map(|message| message.bytes).unwrap_or_default();
    let ids = match <[u8; 4]>::try_from(first.as_slice()) {
        Ok(first) if slot.is_privileged => Ids::Range(u32::from_le_bytes(first)),
        Ok(_) => Ids::Single,
        Err(_) => return Err(Errno::PERM).at("get ids from the launcher"),
    };
    if let Ids::Range(_) = ids {
        // Files on a file system of this namespace can only be made by an id it knows.
        let (uid, gid) = (Uid::from_raw(0), Gid::from_raw(0));
        rustix::thread::set_thread_groups(&[]).at("leave all groups")?;
        rustix::thread::set_thread_res_gid(gid, gid, gid).at("take group 0")?;
        rustix::thread::set_thread_res_uid(uid, uid, uid).at("take user 0")?;
    }
    Ok(ids)
}

fn carry_out(slot: &Slot<'_>, ids: Ids, message: socket::Message) -> Result<(), StepError> {
    let mut descriptors = message.descriptors.into_iter();
    let malformed = || Err(Errno::PROTO).at("read the order");
    let Some(file) = descriptors.next() else {
        return malformed();
    };
    let mut stream = || descriptors.next();
    let (Some(stdin), Some(stdout), Some(stderr)) = (stream(), stream(), stream()) else {
        return malformed();
    };
    let streams: [OwnedFd; STREAMS] = [stdin, stdout, stderr];
    let volumes: Vec<OwnedFd> = descriptors.collect();
    let mapped = MappedFile::new(file.as_fd()).at("map the order")?;
    let Ok(order) = Order::decode(mapped.bytes()) else {
        return malformed();
    };
    drop(file);

    // SAFETY: a slot is a copy of the single-threaded launcher and starts no thread.
    match unsafe { syscall::clone_process(clone_flags(slot.config), None) }.at("clone init")? {
        Cloned::Child => init::run(Init {
            config: slot.config,
            order,
            streams,
            volumes,
            supervisor: slot.supervisor.as_fd(),
            has_own_ids: matches!(ids, Ids::Range(_)),
        }),
        Cloned::Parent(_, init) => {
            drop((streams, volumes));
            socket::send(
                slot.supervisor.as_fd(),
                &Notice::Started.encode(),
                &[init.as_fd()],
            )
            .at("say that init runs")?;
            outlive(slot.supervisor.as_fd(), &init)
        }
    }
}

fn clone_flags(config: &Config) -> CloneFlags {
    let kinds = [
        (Protection::PidNamespace, syscall::NEW_PID),
        (Protection::IpcNamespace, syscall::NEW_IPC),
        (Protection::UtsNamespace, syscall::NEW_UTS),
    ];
    // Mounts are made anew in every case: without that, one run would change the template.
    let mut flags = syscall::NEW_MOUNT;
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

/// Writes the id maps of a slot; done by the launcher, whose namespace the ids belong to.
pub(crate) fn write_id_maps(slot: rustix::process::Pid, ids: Ids) -> Result<(), StepError> {
    for name in ["uid_map", "gid_map"] {
        let path = format!("/proc/{slot}/{name}");
        let file = std::fs::OpenOptions::new().write(true).open(path);
        let mut file = file.at("open a slot's id map")?;
        file.write_all(ids.map().as_bytes())
            .at("write a slot's id map")?;
    }
    Ok(())
}
