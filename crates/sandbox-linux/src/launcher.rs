//! The launcher: a small single-threaded process that clones on behalf of the multi-threaded
//! supervisor.
//!
//! It is this same executable started in a hidden mode (see `reexec`). It builds the root template
//! once, clones an init for each slot, opens the mounts of volumes, and reaps. When its supervisor
//! dies, its socket closes: it then kills every init, removes the supervisor's cgroups, and exits.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{AtFlags, Dir, Mode, OFlags};
use rustix::io::Errno;
use rustix::net::RecvFlags;
use rustix::process::{Signal, WaitId, WaitIdOptions, pidfd_send_signal, waitid};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use sandbox_core::Protection;
use sandbox_protocol::Message as _;
use sandbox_protocol::launcher::LauncherRequest;
use sandbox_protocol::notice::Notice;

use crate::capabilities;
use crate::clock;
use crate::config::Config;
use crate::ids;
use crate::private_root::SharedMounts;
use crate::slot::{LivingSlot, Parts, SlotFactory};
use crate::socket::{self, Message};
use crate::step::{AtStep, StepError};
use crate::syscall::{self, Cloned};
use crate::template;
use crate::volume;
use crate::zygote;

struct Launcher {
    slot_factory: SlotFactory,
    supervisor: OwnedFd,
    /// The host's mount namespace. This process leaves it for the template's, from which every init
    /// is cloned, and returns only to open volumes.
    home: OwnedFd,
    template: OwnedFd,
    slots: Vec<LivingSlot>,
    /// Parents of the supervisor's cgroups; empty after its shutdown request.
    cgroups: Vec<OwnedFd>,
    /// A spare descriptor, so that the first one of a message always arrives and can carry the
    /// answer.
    reserve: Option<OwnedFd>,
}

/// Serves requests until the supervisor is gone.
pub(crate) fn main(supervisor: OwnedFd) -> ! {
    match Launcher::start(supervisor) {
        Ok(launcher) => launcher.serve(),
        Err((supervisor, error)) => {
            let _ = socket::send(supervisor.as_fd(), &Notice::Failed(error.into()).encode(), &[]);
        }
    }
    syscall::exit_now(0)
}

impl Launcher {
    /// Returns the socket with an error, so that the error can be reported.
    fn start(supervisor: OwnedFd) -> Result<Self, (OwnedFd, StepError)> {
        match prepare(supervisor.as_fd()) {
            Ok(Prepared { slot_factory, home, template, cgroups }) => {
                let (slots, reserve) = (Vec::new(), None);
                Ok(Self { slot_factory, supervisor, home, template, slots, cgroups, reserve })
            }
            Err(error) => Err((supervisor, error)),
        }
    }

    fn serve(mut self) {
        let ready = Notice::Ready { owner: 0 }.encode();
        if socket::send(self.supervisor.as_fd(), &ready, &[]).is_ok() {
            // False: the supervisor is gone. An error: the socket is broken, which is the same.
            while let Ok(true) = self.wait() {}
        }
        self.end_all();
    }

    /// Waits for an event and handles it; false when the supervisor is gone.
    fn wait(&mut self) -> Result<bool, Errno> {
        let mut watched = vec![PollFd::new(&self.supervisor, PollFlags::IN)];
        watched.extend(self.slots.iter().map(|slot| PollFd::new(&slot.init, PollFlags::IN)));
        match poll(&mut watched, None) {
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(true),
            Err(error) => return Err(error),
        }
        let ready: Vec<bool> = watched.iter().map(|fd| !fd.revents().is_empty()).collect();
        drop(watched);
        // Backwards, because ended slots are removed from the list.
        for place in (0..self.slots.len()).rev() {
            if ready[1 + place] {
                self.slots.swap_remove(place).reap();
            }
        }
        if !ready[0] {
            return Ok(true);
        }
        drop(self.reserve.take());
        let received = socket::receive_partial(self.supervisor.as_fd(), RecvFlags::empty())?;
        let Some((message, is_partial)) = received else { return Ok(false) };
        if is_partial {
            refuse_for_lack_of_descriptors(&message);
        } else {
            self.handle_request(message);
        }
        self.reserve = rustix::io::fcntl_dupfd_cloexec(&self.home, 0).ok();
        Ok(true)
    }

    fn handle_request(&mut self, message: Message) {
        match LauncherRequest::decode(&message.bytes) {
            Ok(LauncherRequest::PrepareSlot { clone_into_cgroup, kind }) => {
                let Some(parts) = Parts::take(message.descriptors, clone_into_cgroup, kind) else {
                    return;
                };
                self.slots.extend(self.slot_factory.make_slot(parts, self.free_owner()));
            }
            Ok(LauncherRequest::StartZygote { exec }) => {
                self.slots.extend(zygote::start(exec, message.descriptors));
            }
            Ok(LauncherRequest::Shutdown) => self.cgroups.clear(),
            Ok(LauncherRequest::OpenVolume { path, symlinks, writable, owner }) => {
                let Some(supervisor) = message.descriptors.first() else { return };
                let answer = self.at_home(|| volume::open(path, symlinks, writable, owner));
                let sent = match &answer {
                    Ok(tree) => (Notice::Ready { owner: 0 }, vec![tree.as_fd()]),
                    Err(error) => (Notice::Failed(error.clone().into()), Vec::new()),
                };
                let _ = socket::send(supervisor.as_fd(), &sent.0.encode(), &sent.1);
            }
            // Both ends are the same executable: this cannot happen, and an answer would not be
            // expected.
            Err(_) => {}
        }
    }

    /// A user-namespace owner that no living slot has, or the least used one if all are taken.
    fn free_owner(&self) -> u32 {
        let is_free = |number: &u32| self.slots.iter().all(|slot| slot.owner != Some(*number));
        let free = (0..ids::OWNERS_PER_LAUNCHER).find(is_free);
        free.unwrap_or_else(|| u32::try_from(self.slots.len()).unwrap_or_default())
    }

    /// Runs a closure in the host's mount namespace.
    fn at_home<T>(&self, work: impl FnOnce() -> Result<T, StepError>) -> Result<T, StepError> {
        let mounts = Some(LinkNameSpaceType::Mount);
        move_into_link_name_space(self.home.as_fd(), mounts)
            .at("enter the host's mount namespace")?;
        let done = work();
        if move_into_link_name_space(self.template.as_fd(), mounts).is_err() {
            // No sandbox may ever be created in the host's mount namespace.
            syscall::exit_now(1);
        }
        done
    }

    /// Kills all slots and removes the supervisor's cgroups.
    fn end_all(mut self) {
        let slots = std::mem::take(&mut self.slots);
        for slot in &slots {
            let _ = pidfd_send_signal(&slot.init, Signal::KILL);
        }
        slots.into_iter().for_each(LivingSlot::reap);
        // A directory may be busy for a moment longer.
        for _ in 0..200 {
            let left = self.cgroups.iter().filter(|parent| !self.remove_cgroups(parent)).count();
            if left == 0 {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }

    /// Removes the supervisor's cgroups in one directory; false if one is still busy. Only empty
    /// cgroups can be removed.
    fn remove_cgroups(&self, parent: &OwnedFd) -> bool {
        // An O_PATH descriptor cannot be listed, so open the directory.
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = rustix::fs::openat(parent, ".", flags, Mode::empty());
        let Ok(entries) = opened.and_then(Dir::new) else { return true };
        let mut all_gone = true;
        for entry in entries.flatten() {
            let name = entry.file_name();
            if name.to_bytes().starts_with(self.slot_factory.config.cgroup_prefix.as_bytes()) {
                let removed = rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR);
                all_gone &= !matches!(removed, Err(Errno::BUSY));
            }
        }
        all_gone
    }
}

/// Every request carries the socket for its answer first. Without an answer the supervisor would
/// assume that the launcher is gone.
fn refuse_for_lack_of_descriptors(message: &Message) {
    let step = "receive the descriptors of a sandbox in the launcher".to_owned();
    let failed = Notice::Failed(StepError { step, cause: Errno::MFILE }.into());
    if let Some(supervisor) = message.descriptors.first() {
        let _ = socket::send(supervisor.as_fd(), &failed.encode(), &[]);
    }
}

/// Resources created once, before the first slot.
struct Prepared {
    slot_factory: SlotFactory,
    home: OwnedFd,
    template: OwnedFd,
    cgroups: Vec<OwnedFd>,
}

fn prepare(supervisor: BorrowedFd<'_>) -> Result<Prepared, StepError> {
    // The first clock read loads the vDSO with a call that the filter denies; every later child
    // inherits it.
    clock::monotonic_nanos();
    // Programs start with default signal handling, whatever this process inherited.
    syscall::reset_signal_actions();
    // Signals of the terminal are handled by the supervisor.
    rustix::process::setsid().at("start the launcher's session")?;
    let message = socket::receive(supervisor).at("wait for the configuration")?;
    let message = message.ok_or(Errno::PIPE).at("wait for the configuration")?;
    let config = Config::decode(&message.bytes);
    let config = config.map_err(|_| Errno::PROTO).at("read the configuration")?;
    let gives_ids = ids::are_available();
    if !gives_ids {
        become_root_of_own_namespace()?;
    }
    let template = build_template(&config)?;
    let place = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let processes = rustix::fs::open("/proc", place, Mode::empty()).at("open /proc")?;
    let network_settings =
        rustix::fs::open("/proc/sys/net", place, Mode::empty()).at("open /proc/sys/net")?;
    let home = std::fs::File::open("/proc/self/ns/mnt").at("open the host's mount namespace")?;
    let time = std::fs::File::open("/proc/self/ns/time").at("open the time namespace")?;
    move_into_link_name_space(template.as_fd(), Some(LinkNameSpaceType::Mount))
        .at("enter the template's mounts")?;
    // Without a fresh root a program may write to host directories, which an overlay would hide.
    let has_private_inodes = [Protection::PrivateInodes, Protection::FreshRoot];
    let has_private_inodes =
        has_private_inodes.iter().all(|protection| config.protections.has(*protection));
    let shared_mounts =
        if has_private_inodes { Some(SharedMounts::list(processes.as_fd())?) } else { None };
    if config.protections.has(Protection::PrivateFileInodes)
        && shared_mounts.as_ref().is_some_and(SharedMounts::has_files)
    {
        // The supervisor found none when it probed the host.
        return Err(Errno::BUSY).at("give sandboxes inodes of their own for single files");
    }
    let gives_owners = gives_ids && config.protections.has(Protection::InotifyLimits);
    if gives_owners {
        capabilities::keep_through_user_changes().at("let the launcher change its user")?;
    }
    let slot_factory = SlotFactory {
        config,
        processes,
        network_settings,
        time: time.into(),
        gives_ids,
        gives_owners,
        shared_mounts,
    };
    Ok(Prepared { slot_factory, home: home.into(), template, cgroups: message.descriptors })
}

/// Without root: enters a user namespace in which this process has capabilities over its own
/// resources.
fn become_root_of_own_namespace() -> Result<(), StepError> {
    let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
    syscall::unshare(syscall::NEW_USER | syscall::NEW_MOUNT)
        .at("enter a user namespace of the launcher's own")?;
    for (name, contents) in [
        ("setgroups", "deny".to_owned()),
        ("uid_map", format!("0 {} 1", uid.as_raw())),
        ("gid_map", format!("0 {} 1", gid.as_raw())),
    ] {
        std::fs::write(format!("/proc/self/{name}"), contents)
            .at("map the caller's id into the launcher's namespace")?;
    }
    Ok(())
}

/// Builds the template in a temporary process and keeps its mount namespace.
fn build_template(config: &Config) -> Result<OwnedFd, StepError> {
    let (local, peer) = socket::pair().at("connect the builder of the root")?;
    let flags = syscall::NEW_MOUNT | syscall::NEW_PID;
    // SAFETY: the launcher is one thread from its start to its end.
    match unsafe { syscall::clone_process(flags, None) }.at("clone the builder of the root")? {
        Cloned::Child => {
            drop(local);
            let notice = match template::build(config) {
                Ok(()) => Notice::Ready { owner: 0 },
                Err(error) => Notice::Failed(error.into()),
            };
            let _ = socket::send(peer.as_fd(), &notice.encode(), &[]);
            // The launcher ends this process after it has opened the namespace.
            let _ = socket::receive(peer.as_fd());
            syscall::exit_now(0)
        }
        Cloned::Parent(pid, process) => {
            drop(peer);
            let message = socket::receive(local.as_fd()).at("wait for the root")?;
            let answer = message.and_then(|message| Notice::decode(&message.bytes).ok());
            let namespace = match answer {
                Some(Notice::Ready { .. }) => std::fs::File::open(format!("/proc/{pid}/ns/mnt"))
                    .at("open the root's mount namespace")
                    .map(OwnedFd::from),
                Some(Notice::Failed(failure)) => Err(failure.into()),
                _ => Err(Errno::CHILD).at("build the root"),
            };
            drop(local);
            let _ = waitid(WaitId::PidFd(process.as_fd()), WaitIdOptions::EXITED);
            namespace
        }
    }
}
