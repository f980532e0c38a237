//! Creates slots: a cgroup, an init in it, and the descriptors that supervision needs.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::io::Errno;
use sandbox_core::{BackendError, Limits};
use sandbox_linux::cgroup::{CgroupLimits, Hierarchy, OomWatch, Usage};
use sandbox_linux::seccomp::Notifications;
use sandbox_linux::{
    Config, LaunchError, Launcher, Slot, SlotStreams, StepError, UnconfiguredLauncher, Zygote,
};
use sandbox_protocol::exec::ExecRequest;
use sandbox_protocol::launcher::{SlotKind, SymlinkPolicy, VolumeOwner};

use super::descriptors::{Budget, PER_LONG_RUNNING, Permit};
use super::early_exit::WaitingRuntime;
use super::host::Host;
use super::stdin::Input;
use super::streams::Pipes;
use super::teardown::tear_down;
use crate::error::failed;

/// A slot that waits for its exec request, and the usage of its cgroup so far.
pub(crate) struct ReadySlot {
    pub(crate) slot: Slot,
    pub(crate) limits: CgroupLimits,
    pub(crate) before: Usage,
    /// PID, inside, of a forked runtime; 0 if there is none.
    pub(crate) forked_pid: u32,
    /// Whether its artefacts are placed.
    pub(crate) is_loaded: bool,
    /// The process of the waiting runtime, if it can be identified.
    pub(crate) runtime: Option<WaitingRuntime>,
    /// `None` after they were taken.
    pub(crate) handles: Option<SupervisionHandles>,
    /// Descriptors of this process that the slot uses; held until it is torn down.
    pub(crate) permit: Arc<Permit>,
}

/// Pipes and descriptors that the supervision of an execution needs.
pub(crate) struct SupervisionHandles {
    pub(crate) input: Input,
    pub(crate) pipes: Pipes,
    pub(crate) oom: Option<OomWatch>,
    pub(crate) denied_calls: Option<Notifications>,
}

impl ReadySlot {
    /// Closes descriptors that are not needed while a program runs.
    pub(crate) fn release_descriptors(&self) {
        self.slot.cgroup.close_files();
        self.permit.shrink(PER_LONG_RUNNING);
    }
}

/// Creates slots.
pub(crate) struct SlotFactory {
    host: Arc<Host>,
    /// Replaced if it dies.
    launcher: Mutex<Arc<Launcher>>,
}

impl SlotFactory {
    pub(crate) fn start(
        host: Arc<Host>,
        launcher: UnconfiguredLauncher,
    ) -> Result<Self, BackendError> {
        let launcher = configure(launcher, &host)
            .map_err(|error| launch_failed("start the launcher", error))?;
        Ok(Self { host, launcher: Mutex::new(Arc::new(launcher)) })
    }

    /// Prepares a slot with these limits.
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

    /// Prepares a slot before an execution requests it.
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

    /// Starts a zygote.
    pub(crate) fn start_zygote(
        &self,
        request: &ExecRequest<'_>,
        timeout: Duration,
    ) -> Result<Zygote, LaunchError> {
        self.launcher().start_zygote(request, timeout)
    }

    /// Opens a mount of a host path.
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

    /// Starts a new launcher, unless another thread already did.
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
        // Most executions then need no further write.
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
        let mut handles = SupervisionHandles { input, pipes, oom: None, denied_calls };
        match self.equip(&slot, &mut handles) {
            Ok(before) => Ok(ReadySlot {
                slot,
                limits,
                before,
                forked_pid: 0,
                is_loaded: false,
                runtime: None,
                handles: Some(handles),
                permit: Arc::clone(permit),
            }),
            Err(error) => {
                tear_down(slot);
                Err(error)
            }
        }
    }

    /// Sets up supervision of a slot.
    fn equip(&self, slot: &Slot, handles: &mut SupervisionHandles) -> Result<Usage, LaunchError> {
        slot.cgroup.reset_peak()?;
        handles.oom = slot.cgroup.oom_watch()?;
        if self.host.has_own_ids {
            let given = handles.input.give_to(slot.owner).and(handles.pipes.give_to(slot.owner));
            given.map_err(|cause| {
                let step = "give the program its streams".to_owned();
                StepError { step, cause }
            })?;
        }
        Ok(slot.cgroup.usage()?)
    }
}

/// What to check if user namespaces are forbidden, the usual cause.
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
        protections: host.protections,
        image: host.image.as_ref().map_or_else(String::new, |path| path.display().to_string()),
        filter: host.filter.as_bytes().to_vec(),
        filter_notifies: true,
        cgroup_prefix: Hierarchy::own_prefix()?,
        disk_bytes: usual.disk().as_u64(),
        disk_inodes: usual.inodes(),
    };
    launcher.configure(&config, &host.hierarchy.parents()?)
}
