//! Zygotes: runtimes that are started once and forked for each sandbox, which takes a fraction of a
//! start.
//!
//! All forks of one zygote share its memory layout and its hash seed. Therefore a zygote is
//! replaced after a while. See docs/adr/0015.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use sandbox_core::{Limits, StagePlan, with_causes};
use sandbox_linux::seccomp::Notifications;
use sandbox_linux::{Fork, ForkTarget, ProtectionSet, Zygote, can_fork};
use sandbox_protocol::launcher::SlotKind;

use super::exec_request;
use super::host::Host;
use super::slots::{ReadySlot, SlotFactory};
use super::teardown::tear_down;

/// Forks of one zygote before it is replaced.
const MAX_FORKS: usize = 256;
/// Age of a zygote before it is replaced.
const MAX_LIFETIME: Duration = Duration::from_mins(10);
/// Starting a runtime on a busy host takes seconds.
const FORK_TIMEOUT: Duration = Duration::from_secs(30);

/// The current zygote of one specification.
#[derive(Debug, Default)]
pub(crate) struct ZygoteCache(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    current: Option<Current>,
    /// Why no zygote is started any more.
    failure: Option<String>,
}

#[derive(Debug)]
struct Current {
    zygote: Arc<Zygote>,
    forks: usize,
    since: Instant,
}

impl ZygoteCache {
    /// Whether zygotes can be used on this host. A fork supports only the full set of protections.
    pub(crate) fn is_available(&self, host: &Host) -> bool {
        can_fork() && host.protections == ProtectionSet::all() && self.lock().failure.is_none()
    }

    /// Whether a zygote is running.
    pub(crate) fn is_running(&self) -> bool {
        // While one is being started, the lock is taken; callers should not wait for it.
        self.0.try_lock().is_ok_and(|state| state.current.is_some() && state.failure.is_none())
    }

    /// Why there is no zygote, if the last attempt failed.
    pub(crate) fn failure(&self) -> Option<String> {
        self.0.try_lock().ok().and_then(|state| state.failure.clone())
    }

    /// Starts no more zygotes.
    pub(crate) fn give_up(&self, reason: String) {
        self.lock().failure = Some(reason);
    }

    /// Prepares a slot with a fork of the zygote in it.
    pub(crate) fn fork(
        &self,
        host: &Host,
        slot_factory: &SlotFactory,
        limits: &Limits,
        plan: &StagePlan,
    ) -> Result<ReadySlot, String> {
        let zygote = self.current(host, slot_factory, plan)?;
        let prepared = slot_factory.prepare_ahead(SlotKind::Adopting, limits);
        let mut ready = prepared.map_err(|error| with_causes(&error))?;
        match fork_into(&zygote, &mut ready) {
            Ok(()) => Ok(ready),
            Err(reason) => {
                tear_down(ready.slot);
                Err(reason)
            }
        }
    }

    /// The zygote to fork next; starts one if necessary.
    fn current(
        &self,
        host: &Host,
        slot_factory: &SlotFactory,
        plan: &StagePlan,
    ) -> Result<Arc<Zygote>, String> {
        let mut state = self.lock();
        let is_used_up = |current: &Current| {
            current.forks >= MAX_FORKS || current.since.elapsed() >= MAX_LIFETIME
        };
        if state.current.as_ref().is_none_or(is_used_up) {
            let started = exec_request::start_zygote(host, slot_factory, plan, FORK_TIMEOUT);
            let zygote = Arc::new(started.map_err(|error| with_causes(&error))?);
            state.current = Some(Current { zygote, forks: 0, since: Instant::now() });
        }
        let current = state.current.as_mut().ok_or("no runtime could be started")?;
        current.forks += 1;
        Ok(Arc::clone(&current.zygote))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn fork_into(zygote: &Zygote, ready: &mut ReadySlot) -> Result<(), String> {
    use std::os::fd::AsFd;
    let handles = ready.handles.as_mut().ok_or("its pipes were taken already")?;
    let ((stdin, _), (stdout, stderr)) = (handles.input.ends(), handles.pipes.writers());
    let fork = zygote.fork(&ForkTarget {
        init: ready.slot.init.as_fd(),
        cgroup: ready.slot.cgroup.as_ref(),
        streams: [stdin, stdout, stderr],
        rules: ready.slot.rules.as_ref().ok_or("it has no rules")?.as_fd(),
    });
    let Fork { process, denied_calls } = fork.map_err(|error| with_causes(&error))?;
    handles.denied_calls = Notifications::new(denied_calls).ok();
    ready.forked_pid = process;
    ready.slot.rules = None;
    Ok(())
}
