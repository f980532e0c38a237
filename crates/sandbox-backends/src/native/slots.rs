//! Making a slot: a cgroup, an init that stands inside it, and what our side needs to watch it.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::io::Errno;
use sandbox_core::{BackendError, Limits};
use sandbox_linux::cgroup::{CgroupLimits, Hierarchy, OomWatch, Usage};
use sandbox_linux::seccomp::Notifications;
use sandbox_linux::{
    Config, LaunchError, Launcher, Original, Slot, SlotStreams, StepError, UnconfiguredLauncher,
};
use sandbox_protocol::exec::ExecRequest;
use sandbox_protocol::launcher::{SlotKind, SymlinkPolicy, VolumeOwner};

use super::descriptors::{Budget, Permit};
use super::host::Host;
use super::leave::Runtime;
use super::output::Pipes;
use super::retire::take_down;
use super::stdin::Input;
use crate::failed;

/// A slot waiting for its order, and what its cgroup held before.
pub(crate) struct ReadySlot {
    pub(crate) slot: Slot,
    pub(crate) limits: CgroupLimits,
    pub(crate) before: Usage,
    /// The process inside that is a copy of a runtime; 0 for none.
    pub(crate) copy: u32,
    /// Whether the artefacts that it was made for are in it.
    pub(crate) is_loaded: bool,
    /// The runtime that waits inside, where it can be told from everything else.
    pub(crate) runtime: Option<Runtime>,
    /// Until they are taken.
    pub(crate) tools: Option<Tools>,
    /// Its share of this process's descriptors; the slot itself keeps it until it is taken down.
    pub(crate) permit: Arc<Permit>,
}

/// What the supervision of an execution needs, made with the slot.
pub(crate) struct Tools {
    pub(crate) input: Input,
    pub(crate) pipes: Pipes,
    pub(crate) oom: Option<OomWatch>,
    pub(crate) denied_calls: Option<Notifications>,
}

/// Makes slots.
pub(crate) struct Maker {
    host: Arc<Host>,
    /// Replaced by a new one if it should ever die.
    launcher: Mutex<Arc<Launcher>>,
}

impl Maker {
    pub(crate) fn start(
        host: Arc<Host>,
        launcher: UnconfiguredLauncher,
    ) -> Result<Self, BackendError> {
        let launcher = configure(launcher, &host)
            .map_err(|error| launch_failed("start the launcher", error))?;
        Ok(Self { host, launcher: Mutex::new(Arc::new(launcher)) })
    }

    /// A slot with these limits.
    pub(crate) fn prepare(
        &self,
        kind: SlotKind,
        limits: &Limits,
        permit: &Arc<Permit>,
    ) -> Result<ReadySlot, LaunchError> {
        let launcher = self.launcher();
        match self.prepare_with(&launcher, kind, limits, permit) {
            Err(LaunchError::Gone) => {
                self.replace(&launcher)?;
                self.prepare_with(&self.launcher(), kind, limits, permit)
            }
            prepared => prepared,
        }
    }

    /// The same, before an execution asks for it.
    pub(crate) fn prepare_ahead(
        &self,
        kind: SlotKind,
        limits: &Limits,
    ) -> Result<ReadySlot, LaunchError> {
        let permit = Budget::of_process().try_acquire_ahead().map_err(|_| StepError {
            step: "prepare a sandbox ahead: executions need the file descriptors that are left"
                .to_owned(),
            cause: Errno::MFILE,
        })?;
        self.prepare(kind, limits, &permit)
    }

    /// Starts a runtime that is copied.
    pub(crate) fn start_original(
        &self,
        order: &ExecRequest<'_>,
        patience: Duration,
    ) -> Result<Original, LaunchError> {
        self.launcher().start_original(order, patience)
    }

    /// A mount of a host path.
    pub(crate) fn open_volume(
        &self,
        path: &Path,
        symlinks: SymlinkPolicy,
        writable: bool,
        owner: Option<VolumeOwner>,
    ) -> Result<OwnedFd, LaunchError> {
        self.launcher().open_volume(path, symlinks, writable, owner)
    }

    fn launcher(&self) -> Arc<Launcher> {
        Arc::clone(&self.launcher.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Starts a new launcher, unless someone else was quicker.
    fn replace(&self, dead: &Arc<Launcher>) -> Result<(), LaunchError> {
        let mut current = self.launcher.lock().unwrap_or_else(PoisonError::into_inner);
        if Arc::ptr_eq(&current, dead) {
            *current = Arc::new(configure(UnconfiguredLauncher::spawn()?, &self.host)?);
        }
        Ok(())
    }

    fn prepare_with(
        &self,
        launcher: &Launcher,
        kind: SlotKind,
        limits: &Limits,
        permit: &Arc<Permit>,
    ) -> Result<ReadySlot, LaunchError> {
        let cgroup = self.host.hierarchy.create()?;
        // Most executions then need no write at all.
        let limits = self.host.cgroup_limits(limits);
        cgroup.set_limits(&limits)?;
        let streams = Input::open().and_then(|input| Ok((input, Pipes::open()?)));
        let (input, pipes) = streams.map_err(|cause| {
            let _ = cgroup.remove();
            StepError { step: "make the pipes of a sandbox".to_owned(), cause }
        })?;
        let ((stdin, job), (stdout, stderr)) = (input.ends(), pipes.writers());
        let streams = SlotStreams { stdin, stdout, stderr, job };
        let mut slot = launcher.prepare_slot(cgroup, kind, streams)?;
        slot.charges.push(Arc::<Permit>::clone(permit));
        let denied_calls = slot.denied_calls.take().and_then(|fd| Notifications::new(fd).ok());
        let mut tools = Tools { input, pipes, oom: None, denied_calls };
        match self.equip(&slot, &mut tools) {
            Ok(before) => Ok(ReadySlot {
                slot,
                limits,
                before,
                copy: 0,
                is_loaded: false,
                runtime: None,
                tools: Some(tools),
                permit: Arc::clone(permit),
            }),
            Err(error) => {
                take_down(slot);
                Err(error)
            }
        }
    }

    /// What is left to do for a slot on our side.
    fn equip(&self, slot: &Slot, tools: &mut Tools) -> Result<Usage, LaunchError> {
        slot.cgroup.reset_peak()?;
        tools.oom = slot.cgroup.oom_watch()?;
        if self.host.has_own_ids {
            let given = tools.input.give_to(slot.owner).and(tools.pipes.give_to(slot.owner));
            given.map_err(|cause| {
                let step = "give the program its streams".to_owned();
                StepError { step, cause }
            })?;
        }
        Ok(slot.cgroup.usage()?)
    }
}

/// What a person can look at where user namespaces are forbidden, which is the usual reason.
const USER_NAMESPACES: &str = "this host seems to forbid user namespaces; look at \
     user.max_user_namespaces, kernel.unprivileged_userns_clone and \
     kernel.apparmor_restrict_unprivileged_userns with sysctl, or at the container's seccomp profile";

pub(crate) fn launch_failed(step: &str, error: LaunchError) -> BackendError {
    let forbidden = [Errno::PERM, Errno::ACCESS, Errno::NOSPC, Errno::USERS];
    match &error {
        LaunchError::Step(cause)
            if forbidden.contains(&cause.cause)
                && (cause.step.contains("namespace") || cause.step.contains("clone")) =>
        {
            failed(&format!("{step}: {USER_NAMESPACES}"), error)
        }
        _ => failed(step, error),
    }
}

fn configure(launcher: UnconfiguredLauncher, host: &Host) -> Result<Launcher, LaunchError> {
    let usual = Limits::run();
    let config = Config {
        walls: host.walls,
        image: host.image.as_ref().map_or_else(String::new, |path| path.display().to_string()),
        filter: host.filter.as_bytes().to_vec(),
        filter_notifies: true,
        cgroup_prefix: Hierarchy::own_prefix()?,
        disk_bytes: usual.disk().as_u64(),
        disk_inodes: usual.inodes(),
    };
    launcher.configure(&config, &host.hierarchy.parents()?)
}
