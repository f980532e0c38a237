//! A slot: the init of one sandbox, cloned ahead of time into new namespaces.
//!
//! This happens ahead of requests, because joining a cgroup after idleness takes milliseconds, and
//! creating a network namespace almost one. A slot is used once.

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, pidfd_send_signal, waitid};
use rustix::thread::{LinkNameSpaceType, Uid, move_into_link_name_space};
use sandbox_core::Protection;
use sandbox_protocol::Message as _;
use sandbox_protocol::launcher::SlotKind;
use sandbox_protocol::notice::Notice;

use crate::clock;
use crate::config::Config;
use crate::ids::{self, Ids};
use crate::init::{self, Init};
use crate::private_root::{PrivateRoot, SharedMounts};
use crate::socket;
use crate::step::{AtStep, StepError};
use crate::streams::Streams;
use crate::syscall::{self, CloneFlags, Cloned};

/// What the launcher creates slots from.
pub(crate) struct SlotFactory {
    pub(crate) config: Config,
    /// The host's `/proc`, which is not visible in the template.
    pub(crate) processes: OwnedFd,
    /// The host's `/proc/sys/net`.
    pub(crate) network_settings: OwnedFd,
    /// The launcher's own time namespace.
    pub(crate) time: OwnedFd,
    /// Whether sandboxes get IDs of their own.
    pub(crate) gives_ids: bool,
    /// Whether user namespaces can be owned by users other than this process's.
    pub(crate) gives_owners: bool,
    /// The mounts that each sandbox covers; `None` without that protection.
    pub(crate) shared_mounts: Option<SharedMounts>,
}

/// The descriptors of a request to prepare a slot.
pub(crate) struct Parts {
    kind: SlotKind,
    /// The socket to the supervisor.
    supervisor: OwnedFd,
    streams: Streams,
    /// Files to write "0" to, to join a cgroup.
    entries: Vec<OwnedFd>,
    /// A cgroup to clone into instead.
    cgroup: Option<OwnedFd>,
}

/// A child of the launcher: the init of a slot, or a zygote.
pub(crate) struct LivingSlot {
    pub(crate) init: OwnedFd,
    pub(crate) supervisor: OwnedFd,
    /// The number of the owner of its user namespace, if it has one of its own.
    pub(crate) owner: Option<u32>,
}

impl Parts {
    /// Takes the descriptors of a request.
    pub(crate) fn take(
        descriptors: Vec<OwnedFd>,
        clone_into: bool,
        kind: SlotKind,
    ) -> Option<Self> {
        let mut descriptors = descriptors.into_iter();
        let supervisor = descriptors.next()?;
        let streams = Streams::take(&mut descriptors)?;
        let mut entries: Vec<OwnedFd> = descriptors.collect();
        let cgroup = if clone_into { entries.pop() } else { None };
        Some(Self { kind, supervisor, streams, entries, cgroup })
    }
}

impl SlotFactory {
    /// Clones an init. Errors are reported to the supervisor.
    pub(crate) fn make_slot(&self, parts: Parts, owner: u32) -> Option<LivingSlot> {
        let owner = self.gives_owners.then_some(owner);
        let report = |supervisor: &OwnedFd, error: StepError| {
            // The supervisor may be gone.
            let _ = socket::send(supervisor.as_fd(), &Notice::Failed(error.into()).encode(), &[]);
        };
        match rustix::io::fcntl_dupfd_cloexec(&parts.supervisor, 0).at("connect an init") {
            Ok(reporter) => {
                self.try_make_slot(parts, owner).map_err(|error| report(&reporter, error)).ok()
            }
            Err(error) => {
                report(&parts.supervisor, error);
                None
            }
        }
    }

    fn try_make_slot(&self, parts: Parts, owner: Option<u32>) -> Result<LivingSlot, StepError> {
        let (local, peer) = socket::pair().at("connect an init")?;
        let root = self.shared_mounts.as_ref().map(SharedMounts::cover).transpose()?;
        if self.config.protections.has(Protection::TimeNamespace) {
            // For the next child; this process stays in its own.
            syscall::unshare(syscall::NEW_TIME).at("make a time namespace")?;
            clock::start_at_zero(self.processes.as_fd())
                .at("start the clocks of the time namespace")?;
        }
        let cgroup = parts.cgroup.as_ref().map(AsFd::as_fd);
        let launcher = rustix::process::getpid();
        become_owner(owner.map(|number| ids::namespace_owner(launcher, number)))?;
        // SAFETY: the launcher is one thread from its start to its end.
        let cloned = unsafe { syscall::clone_process(clone_flags(&self.config), cgroup) };
        let (pid, init) = match cloned.at("clone init")? {
            Cloned::Child => self.become_init(parts, peer, root),
            Cloned::Parent(pid, init) => (pid, init),
        };
        become_owner(owner.map(|_| Uid::ROOT))?;
        drop((peer, root));
        if self.config.protections.has(Protection::TimeNamespace) {
            // Do not keep the child's namespace alive.
            let _ = move_into_link_name_space(self.time.as_fd(), Some(LinkNameSpaceType::Time));
        }
        let ids = if self.gives_ids { Ids::for_init(pid) } else { Ids::Single };
        let result = self
            .write_id_maps(pid, ids)
            .and_then(|()| socket::send(local.as_fd(), &ids.encode(), &[]).at("give init its ids"))
            .and_then(|()| {
                let cloned = Notice::Cloned.encode();
                socket::send(parts.supervisor.as_fd(), &cloned, &[init.as_fd()])
                    .at("report that init runs")
            });
        let slot = LivingSlot { init, supervisor: parts.supervisor, owner };
        if let Err(error) = result {
            let _ = pidfd_send_signal(&slot.init, Signal::KILL);
            slot.reap();
            return Err(error);
        }
        Ok(slot)
    }

    /// In the child: keeps what init needs and closes all other descriptors.
    fn become_init(&self, parts: Parts, launcher: OwnedFd, root: Option<PrivateRoot<'_>>) -> ! {
        let Parts { kind, supervisor, streams, entries, .. } = parts;
        let network_settings = self.network_settings.as_fd();
        let mut kept = vec![supervisor.as_fd(), launcher.as_fd(), network_settings];
        kept.extend(streams.all());
        kept.extend(entries.iter().map(AsFd::as_fd));
        kept.extend(root.iter().flat_map(PrivateRoot::descriptors));
        if syscall::close_all_but(&kept).is_err() {
            syscall::exit_now(1);
        }
        let config = &self.config;
        let init = Init { config, kind, supervisor, launcher, entries, network_settings };
        init::run(&init, streams, root)
    }

    /// Writes the ID maps of an init. Its IDs belong to the launcher's namespace.
    fn write_id_maps(&self, init: Pid, ids: Ids) -> Result<(), StepError> {
        for name in ["uid_map", "gid_map"] {
            let path = format!("{init}/{name}");
            let flags = OFlags::WRONLY | OFlags::CLOEXEC;
            let file = rustix::fs::openat(&self.processes, path, flags, Mode::empty());
            let file = file.at("open the id map of a sandbox")?;
            rustix::io::write(file, ids.map().as_bytes()).at("write the id map of a sandbox")?;
        }
        Ok(())
    }
}

impl LivingSlot {
    /// Reaps init, which has exited or was killed, and reports that. By then the kernel has killed
    /// every process of its PID namespace.
    pub(crate) fn reap(self) {
        while let Err(Errno::INTR) = waitid(WaitId::PidFd(self.init.as_fd()), WaitIdOptions::EXITED)
        {
        }
        // The supervisor may be gone.
        let _ = socket::send(self.supervisor.as_fd(), &Notice::Gone.encode(), &[]);
    }
}

/// Makes a user the owner of the next user namespace: the kernel takes the effective user.
fn become_owner(user: Option<Uid>) -> Result<(), StepError> {
    let Some(user) = user else { return Ok(()) };
    let real = rustix::process::getuid();
    rustix::thread::set_thread_res_uid(real, user, Uid::ROOT)
        .at("set the owner of a user namespace")
}

/// The namespaces that an init gets.
pub(crate) fn clone_flags(config: &Config) -> CloneFlags {
    let kinds = [
        (Protection::PidNamespace, syscall::NEW_PID),
        (Protection::NetNamespace, syscall::NEW_NET),
        (Protection::IpcNamespace, syscall::NEW_IPC),
        (Protection::UtsNamespace, syscall::NEW_UTS),
    ];
    // The user namespace owns the others. A new mount namespace is always needed: otherwise a
    // sandbox would change the template of all.
    let mut flags = syscall::NEW_USER | syscall::NEW_MOUNT;
    for (protection, flag) in kinds {
        if config.protections.has(protection) {
            flags |= flag;
        }
    }
    flags
}
