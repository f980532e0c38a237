//! Slots ready before they are needed, and taken down after they were used.
//!
//! Two threads work beside the executions. One prepares: joining a cgroup after idleness takes
//! milliseconds, so it must not happen while someone waits. One retires: it waits until the last
//! process of a used slot is gone, removes its cgroup and checks that it could. Neither is needed for
//! correctness: with no spare slot a claim prepares its own.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Signal, pidfd_send_signal};
use sandbox_core::{BackendError, Limits, PoolFigures};
use sandbox_linux::cgroup::{CgroupLimits, Hierarchy, OomWatch, Usage};
use sandbox_linux::{Config, LaunchError, Launcher, Slot, StepError, VolumeOwner};

use super::host::Host;
use super::output::Pipes;
use super::{Spare, failed};

/// Used slots that may wait to be taken down before executions have to wait for that.
const MOST_RETIRING: usize = 64;
/// After a program's end its last process is gone at once; longer than this is a fault of ours.
const TAKE_DOWN_TIME: Duration = Duration::from_secs(5);

/// A slot waiting for its order, and what its cgroup held before.
pub(crate) struct ReadySlot {
    pub(crate) slot: Slot,
    pub(crate) limits: CgroupLimits,
    pub(crate) before: Usage,
    /// Until they are taken.
    tools: Option<Tools>,
}

/// What the supervision of an execution needs, made with the slot.
pub(crate) struct Tools {
    pub(crate) pipes: Pipes,
    pub(crate) oom: Option<OomWatch>,
}

/// A slot in use. However its use ends, it is then taken down.
pub(crate) struct Lease<'a> {
    ready: Option<ReadySlot>,
    slots: &'a Slots,
}

pub(crate) struct Slots {
    shared: Arc<Shared>,
    preparing: Option<JoinHandle<()>>,
    retiring: Option<JoinHandle<()>>,
    retire: Option<SyncSender<Slot>>,
    prepared_claims: AtomicU64,
    built_claims: AtomicU64,
}

struct Shared {
    host: Arc<Host>,
    /// Replaced by a new one if it should ever die.
    launcher: Mutex<Arc<Launcher>>,
    spare: Spare,
    state: Mutex<State>,
    wanted: Condvar,
    /// What was underway is there, or failed.
    made: Condvar,
}

#[derive(Default)]
struct State {
    ready: VecDeque<ReadySlot>,
    supply: Supply,
    closing: bool,
}

/// What the preparing thread is at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Supply {
    /// Nothing.
    #[default]
    Idle,
    /// A slot.
    Underway,
    /// A slot that someone waits for.
    Awaited,
    /// The last one failed: it tries no more until someone asks, who then hears why.
    Stalled,
}

impl Slots {
    pub(crate) fn start(host: Arc<Host>, spare: Spare) -> Result<Self, BackendError> {
        let launcher =
            start_launcher(&host).map_err(|error| launch_failed("start the launcher", error))?;
        let shared = Arc::new(Shared {
            host,
            launcher: Mutex::new(Arc::new(launcher)),
            spare,
            state: Mutex::new(State::default()),
            wanted: Condvar::new(),
            made: Condvar::new(),
        });
        let (retire, to_retire) = sync_channel(MOST_RETIRING);
        let preparing = (!matches!(spare, Spare::Keep(0) | Spare::Once(0))).then(|| {
            // Whoever claims at once finds it underway.
            shared.lock().supply = Supply::Underway;
            let shared = Arc::clone(&shared);
            spawn("sandbox-prepare", move || shared.keep_ready())
        });
        let retiring = spawn("sandbox-retire", move || to_retire.into_iter().for_each(take_down));
        Ok(Self {
            shared,
            preparing: preparing.transpose()?,
            retiring: Some(retiring?),
            retire: Some(retire),
            prepared_claims: AtomicU64::new(0),
            built_claims: AtomicU64::new(0),
        })
    }

    /// A slot for one execution: a spare one, the one that is nearly there, or one made for it.
    pub(crate) fn claim(&self) -> Result<Lease<'_>, BackendError> {
        loop {
            let (ready, claims) = match self.shared.take_ready() {
                // Its processes may have been killed while it waited.
                Some(ready) if is_closed(&ready.slot.socket, Duration::ZERO) => {
                    self.retire(ready.slot);
                    continue;
                }
                Some(ready) => (ready, &self.prepared_claims),
                None => {
                    let built = self.shared.prepare();
                    let failed = |error| launch_failed("prepare a sandbox", error);
                    (built.map_err(failed)?, &self.built_claims)
                }
            };
            claims.fetch_add(1, Ordering::Relaxed);
            return Ok(Lease { ready: Some(ready), slots: self });
        }
    }

    pub(crate) fn figures(&self) -> PoolFigures {
        let (Spare::Keep(wanted) | Spare::Once(wanted)) = self.shared.spare;
        PoolFigures {
            wanted,
            ready: self.shared.lock().ready.len(),
            prepared_claims: self.prepared_claims.load(Ordering::Relaxed),
            built_claims: self.built_claims.load(Ordering::Relaxed),
        }
    }

    fn retire(&self, slot: Slot) {
        if let Some(retire) = &self.retire {
            // The receiver lives as long as this sender does.
            let _ = retire.send(slot);
        }
    }

    /// A mount of a host path.
    pub(crate) fn open_volume(
        &self,
        path: &Path,
        writable: bool,
        owner: Option<VolumeOwner>,
    ) -> Result<OwnedFd, LaunchError> {
        self.shared.launcher().open_volume(path, writable, owner)
    }
}

impl Shared {
    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn launcher(&self) -> Arc<Launcher> {
        Arc::clone(&self.launcher.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn prepare(&self) -> Result<ReadySlot, LaunchError> {
        let launcher = self.launcher();
        match self.prepare_with(&launcher) {
            Err(LaunchError::Gone) => {
                self.replace(&launcher)?;
                self.prepare_with(&self.launcher())
            }
            prepared => prepared,
        }
    }

    /// Starts a new launcher, unless someone else was quicker.
    fn replace(&self, dead: &Arc<Launcher>) -> Result<(), LaunchError> {
        let mut current = self.launcher.lock().unwrap_or_else(PoisonError::into_inner);
        if Arc::ptr_eq(&current, dead) {
            *current = Arc::new(start_launcher(&self.host)?);
        }
        Ok(())
    }

    fn prepare_with(&self, launcher: &Launcher) -> Result<ReadySlot, LaunchError> {
        let cgroup = self.host.hierarchy.create()?;
        // The default limits are set now; most executions then need no write at all.
        let limits = self.host.cgroup_limits(&Limits::run());
        cgroup.set_limits(&limits)?;
        let slot = launcher.prepare_slot(cgroup)?;
        match self.equip(&slot) {
            Ok((before, tools)) => Ok(ReadySlot { slot, limits, before, tools: Some(tools) }),
            Err(error) => {
                take_down(slot);
                Err(error)
            }
        }
    }

    /// What is left to do for a slot on our side.
    fn equip(&self, slot: &Slot) -> Result<(Usage, Tools), LaunchError> {
        slot.cgroup.reset_peak()?;
        let oom = slot.cgroup.oom_watch()?;
        let owner = self.host.has_own_ids.then_some(slot.owner);
        let pipes = Pipes::open(owner).map_err(|cause| {
            let step = "make the output pipes".to_owned();
            StepError { step, cause }
        })?;
        Ok((slot.cgroup.usage()?, Tools { pipes, oom }))
    }

    /// A spare slot. If one is being made and nobody else waits for it, it is sooner there than a new
    /// one would be.
    fn take_ready(&self) -> Option<ReadySlot> {
        let mut state = self.lock();
        if state.supply == Supply::Stalled {
            state.supply = Supply::Idle;
        }
        if state.ready.is_empty() && state.supply == Supply::Underway {
            state.supply = Supply::Awaited;
            while state.ready.is_empty() && state.supply == Supply::Awaited {
                state = self.made.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
        }
        let ready = state.ready.pop_front();
        self.wanted.notify_one();
        ready
    }

    fn keep_ready(&self) {
        let (wanted, mut left) = match self.spare {
            Spare::Keep(count) => (count, usize::MAX),
            Spare::Once(count) => (count, count),
        };
        let mut state = self.lock();
        while !state.closing && left > 0 {
            if state.supply == Supply::Stalled || state.ready.len() >= wanted {
                state = self.wanted.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            state.supply = Supply::Underway;
            drop(state);
            let prepared = self.prepare();
            left -= 1;
            state = self.lock();
            state.supply = match prepared {
                Ok(slot) => {
                    state.ready.push_back(slot);
                    Supply::Idle
                }
                Err(_) => Supply::Stalled,
            };
            self.made.notify_all();
        }
    }
}

impl Drop for Slots {
    fn drop(&mut self) {
        let ready = {
            let mut state = self.shared.lock();
            state.closing = true;
            std::mem::take(&mut state.ready)
        };
        self.shared.wanted.notify_all();
        if let Some(preparing) = self.preparing.take() {
            let _ = preparing.join();
        }
        let late = std::mem::take(&mut self.shared.lock().ready);
        for slot in ready.into_iter().chain(late) {
            self.retire(slot.slot);
        }
        drop(self.retire.take());
        if let Some(retiring) = self.retiring.take() {
            let _ = retiring.join();
        }
    }
}

impl Lease<'_> {
    /// The pipes and the watch of this slot, once.
    pub(crate) fn take_tools(&mut self) -> Tools {
        let ready = self.ready.as_mut().expect("only dropping takes it");
        ready.tools.take().expect("an execution takes them once")
    }
}

impl std::ops::Deref for Lease<'_> {
    type Target = ReadySlot;

    fn deref(&self) -> &ReadySlot {
        self.ready.as_ref().expect("only dropping takes it")
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        // What is left to do is taking down, and proving it: not on the path of the answer.
        if let Some(ready) = self.ready.take() {
            self.slots.retire(ready.slot);
        }
    }
}

/// Ends what is left of a slot and removes its cgroup.
fn take_down(slot: Slot) {
    let Slot { socket, cgroup, init, .. } = slot;
    // Init may wait for an order that will not come, or be left over from a failure of ours; one that
    // has ended by itself does not mind.
    let _ = pidfd_send_signal(&init, Signal::KILL);
    is_closed(&socket, TAKE_DOWN_TIME);
    if cgroup.remove().is_err() {
        // Something is still in there that should not be.
        let _ = cgroup.kill();
        let _ = cgroup.remove();
    }
}

/// Whether the other side is closed, or is so within this time.
fn is_closed(socket: &OwnedFd, patience: Duration) -> bool {
    let deadline = Instant::now() + patience;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let mut watched = [PollFd::new(socket, PollFlags::RDHUP)];
        let timeout =
            Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: left.subsec_nanos().into() };
        match poll(&mut watched, Some(&timeout)) {
            Err(Errno::INTR) => {}
            polled => return polled.is_ok_and(|count| count > 0),
        }
    }
}

/// What a person can look at where user namespaces are forbidden, which is the usual reason.
const USER_NAMESPACES: &str = "this host seems to forbid user namespaces; look at \
     user.max_user_namespaces, kernel.unprivileged_userns_clone and \
     kernel.apparmor_restrict_unprivileged_userns with sysctl, or at the container's seccomp profile";

fn launch_failed(step: &str, error: LaunchError) -> BackendError {
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

fn start_launcher(host: &Host) -> Result<Launcher, LaunchError> {
    let usual = Limits::run();
    let config = Config {
        walls: host.walls,
        visible: vec!["/usr".to_owned()],
        filter: host.filter.as_bytes().to_vec(),
        filter_notifies: true,
        cgroup_prefix: Hierarchy::own_prefix()?,
        disk_bytes: usual.disk().as_u64(),
        disk_inodes: usual.inodes(),
    };
    Launcher::start(&config, &host.hierarchy.parents()?)
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, BackendError> {
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(work)
        .map_err(|error| failed("start a thread", error))
}
