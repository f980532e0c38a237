//! The launcher: a small single-threaded process that clones, so that the threaded one need not.
//!
//! It is this same executable started in a hidden mode (see `reexec`). It builds the template of the
//! root once, prepares slots, writes their id maps, makes the mounts of volumes, and reaps slots. When
//! its supervisor dies its socket closes: it then ends every slot, removes what cgroups the supervisor
//! had, and goes.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{AtFlags, Dir, Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, pidfd_send_signal, waitid};

use crate::clock;
use crate::ids::{self, Ids};
use crate::order::{Config, Errand, Notice};
use crate::slot::{self, Slot};
use crate::socket::{self, Message};
use crate::step::{AtStep, StepError};
use crate::syscall::{self, Cloned};
use crate::template;
use crate::volume;

/// A slot as its launcher knows it.
struct LivingSlot {
    pid: Pid,
    process: OwnedFd,
    /// The slot asks for init's ids here; after that nothing is said, and only its end is waited for.
    socket: Option<OwnedFd>,
}

struct Launcher {
    config: Config,
    supervisor: OwnedFd,
    template: OwnedFd,
    is_privileged: bool,
    slots: Vec<LivingSlot>,
    /// Directories in which the supervisor's cgroups are; none once it has said farewell.
    cgroups: Vec<OwnedFd>,
}

/// Runs until the supervisor is gone.
pub(crate) fn main(supervisor: OwnedFd) -> ! {
    match Launcher::start(supervisor) {
        Ok(launcher) => launcher.serve(),
        Err((supervisor, error)) => {
            let _ = socket::send(supervisor.as_fd(), &Notice::Failed(error).encode(), &[]);
        }
    }
    syscall::exit_now(0)
}

impl Launcher {
    /// Gives the socket back with the error, so that it can be told.
    fn start(supervisor: OwnedFd) -> Result<Self, (OwnedFd, StepError)> {
        match prepare(supervisor.as_fd()) {
            Ok((config, cgroups, template, is_privileged)) => {
                let slots = Vec::new();
                Ok(Self { config, supervisor, template, is_privileged, slots, cgroups })
            }
            Err(error) => Err((supervisor, error)),
        }
    }

    fn serve(mut self) {
        let ready = Notice::Ready { owner: 0 }.encode();
        if socket::send(self.supervisor.as_fd(), &ready, &[]).is_ok() {
            // False: the supervisor is gone. An error: we can no longer hear it, which is the same.
            while let Ok(true) = self.wait() {}
        }
        self.end_all();
    }

    /// Waits for something to do and does it; false when the supervisor is gone.
    fn wait(&mut self) -> Result<bool, Errno> {
        let mut watched = vec![PollFd::new(&self.supervisor, PollFlags::IN)];
        for slot in &self.slots {
            watched.push(PollFd::new(&slot.process, PollFlags::IN));
            let asking = slot.socket.as_ref().unwrap_or(&slot.process);
            watched.push(PollFd::new(asking, PollFlags::IN));
        }
        match poll(&mut watched, None) {
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(true),
            Err(error) => return Err(error),
        }
        let ready: Vec<bool> = watched.iter().map(|fd| !fd.revents().is_empty()).collect();
        drop(watched);
        // Backwards, because ended slots are taken out of the list.
        for place in (0..self.slots.len()).rev() {
            if ready[1 + place * 2] {
                let ended = self.slots.swap_remove(place);
                let _ = waitid(WaitId::PidFd(ended.process.as_fd()), WaitIdOptions::EXITED);
            } else if ready[2 + place * 2] {
                self.map_ids(place);
            }
        }
        if !ready[0] {
            return Ok(true);
        }
        match socket::receive(self.supervisor.as_fd())? {
            Some(message) => {
                self.run_errand(message);
                Ok(true)
            }
            None => Ok(false),
        }
    }

    /// A slot has cloned its init and says which process that is.
    fn map_ids(&mut self, place: usize) {
        let slot = &mut self.slots[place];
        // A slot asks once, or is gone, which its process descriptor will say.
        let Some(socket) = slot.socket.take() else { return };
        let Ok(Some(message)) = socket::try_receive(socket.as_fd()) else { return };
        let init = <[u8; 4]>::try_from(message.bytes.as_slice()).ok();
        let init = init.and_then(|bytes| Pid::from_raw(i32::from_le_bytes(bytes)));
        // The ids follow from the slot, which outlives every process that has them.
        let ids = if self.is_privileged { Ids::for_slot(slot.pid) } else { Ids::Single };
        let written = init.map(|init| slot::write_id_maps(init, ids));
        let answer = if let Some(Ok(())) = written { ids.encode() } else { b"refused".to_vec() };
        let _ = socket::send(socket.as_fd(), &answer, &[]);
    }

    fn run_errand(&mut self, message: Message) {
        match Errand::decode(&message.bytes) {
            Ok(Errand::Slot { clone_into }) => self.make_slot(clone_into, message.descriptors),
            Ok(Errand::Farewell) => self.cgroups.clear(),
            Ok(Errand::Volume { path, writable, owner }) => {
                let answer = volume::open(&path, writable, owner);
                let sent = match &answer {
                    Ok(tree) => (Notice::Ready { owner: 0 }, vec![tree.as_fd()]),
                    Err(error) => (Notice::Failed(error.clone()), Vec::new()),
                };
                let _ = socket::send(self.supervisor.as_fd(), &sent.0.encode(), &sent.1);
            }
            // Both ends are the same executable: this cannot happen, and answering would confuse it.
            Err(_) => {}
        }
    }

    fn make_slot(&mut self, clone_into: bool, descriptors: Vec<OwnedFd>) {
        let mut descriptors = descriptors.into_iter();
        let Some(supervisor) = descriptors.next() else { return };
        let mut entries: Vec<OwnedFd> = descriptors.collect();
        let cgroup = if clone_into { entries.pop() } else { None };
        let pair = socket::pair().at("connect a slot");
        let made = pair.and_then(|(ours, theirs)| {
            // SAFETY: the launcher is one thread from its start to its end.
            let cloned = unsafe { syscall::clone_process(0, cgroup.as_ref().map(AsFd::as_fd)) };
            match cloned.at("clone a slot")? {
                Cloned::Child => {
                    self.become_slot(supervisor.try_clone(), theirs, entries);
                }
                Cloned::Parent(pid, process) => Ok(LivingSlot { pid, process, socket: Some(ours) }),
            }
        });
        match made {
            Ok(slot) => self.slots.push(slot),
            Err(error) => {
                let _ = socket::send(supervisor.as_fd(), &Notice::Failed(error).encode(), &[]);
            }
        }
    }

    /// In the copy: keeps what a slot needs and closes everything else of the launcher's.
    fn become_slot(
        &self,
        supervisor: std::io::Result<OwnedFd>,
        launcher: OwnedFd,
        entries: Vec<OwnedFd>,
    ) -> ! {
        let Ok(supervisor) = supervisor else { syscall::exit_now(1) };
        let mut kept: Vec<_> = vec![supervisor.as_fd(), launcher.as_fd(), self.template.as_fd()];
        kept.extend(entries.iter().map(AsFd::as_fd));
        if syscall::close_all_but(&kept).is_err() {
            syscall::exit_now(1);
        }
        slot::run(&Slot {
            config: &self.config,
            supervisor,
            launcher,
            entries,
            template: self.template.as_fd(),
        })
    }

    /// Ends what is left and removes its cgroups, which nobody else will now.
    fn end_all(mut self) {
        let slots = std::mem::take(&mut self.slots);
        for slot in &slots {
            let _ = pidfd_send_signal(&slot.process, Signal::KILL);
        }
        for slot in &slots {
            let _ = waitid(WaitId::PidFd(slot.process.as_fd()), WaitIdOptions::EXITED);
        }
        // An init so young that it is not bound to its slot yet waits for its ids: now it hears that
        // none will come.
        drop(slots);
        // Init of each dies with its slot, but a moment later: a directory is busy until then.
        for _ in 0..200 {
            let left = self.cgroups.iter().filter(|parent| !self.remove_cgroups(parent)).count();
            if left == 0 {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }

    /// Removes the supervisor's cgroups in one directory, whether a slot was in them or not yet; false
    /// if one is still busy. Only empty ones can be removed.
    fn remove_cgroups(&self, parent: &OwnedFd) -> bool {
        // The descriptor names a place; to list it, it has to be opened.
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = rustix::fs::openat(parent, ".", flags, Mode::empty());
        let Ok(entries) = opened.and_then(Dir::new) else { return true };
        let mut all_gone = true;
        for entry in entries.flatten() {
            let name = entry.file_name();
            if name.to_bytes().starts_with(self.config.cgroup_prefix.as_bytes()) {
                let removed = rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR);
                all_gone &= !matches!(removed, Err(Errno::BUSY));
            }
        }
        all_gone
    }
}

/// What happens once, before the first slot.
fn prepare(supervisor: BorrowedFd<'_>) -> Result<(Config, Vec<OwnedFd>, OwnedFd, bool), StepError> {
    // The first look at the clock finds the kernel's fast path to it with a call that the filter
    // refuses; every copy of this process then has it.
    clock::monotonic_nanos();
    // Programs start with every signal as it is by default, whatever this process inherited.
    syscall::reset_signal_actions();
    // Signals of the terminal are for the supervisor to act on.
    rustix::process::setsid().at("start the launcher's session")?;
    let message = socket::receive(supervisor).at("wait for the configuration")?;
    let message = message.ok_or(Errno::PIPE).at("wait for the configuration")?;
    let config = Config::decode(&message.bytes);
    let config = config.map_err(|_| Errno::PROTO).at("read the configuration")?;
    let is_privileged = ids::are_available();
    if !is_privileged {
        become_root_of_own_namespace()?;
    }
    let template = build_template(&config)?;
    Ok((config, message.descriptors, template, is_privileged))
}

/// Without root: a namespace in which this process may do what root could, to what is its own.
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

/// Lets a process of its own build the template, keeps its mount namespace, and ends it.
fn build_template(config: &Config) -> Result<OwnedFd, StepError> {
    let (ours, theirs) = socket::pair().at("connect the builder of the root")?;
    let flags = syscall::NEW_MOUNT | syscall::NEW_PID;
    // SAFETY: the launcher is one thread from its start to its end.
    match unsafe { syscall::clone_process(flags, None) }.at("clone the builder of the root")? {
        Cloned::Child => {
            drop(ours);
            let notice = match template::build(config) {
                Ok(()) => Notice::Ready { owner: 0 },
                Err(error) => Notice::Failed(error),
            };
            let _ = socket::send(theirs.as_fd(), &notice.encode(), &[]);
            // The launcher ends this process after it has taken hold of the namespace.
            let _ = socket::receive(theirs.as_fd());
            syscall::exit_now(0)
        }
        Cloned::Parent(pid, process) => {
            drop(theirs);
            let message = socket::receive(ours.as_fd()).at("wait for the root")?;
            let answer = message.and_then(|message| Notice::decode(&message.bytes).ok());
            let namespace = match answer {
                Some(Notice::Ready { .. }) => std::fs::File::open(format!("/proc/{pid}/ns/mnt"))
                    .at("take hold of the root's mounts")
                    .map(OwnedFd::from),
                Some(Notice::Failed(error)) => Err(error),
                _ => Err(Errno::CHILD).at("build the root"),
            };
            drop(ours);
            let _ = waitid(WaitId::PidFd(process.as_fd()), WaitIdOptions::EXITED);
            namespace
        }
    }
}
