//! Runtimes that are started once and copied, where the runtime allows it: a copy costs a part of a start.
//!
//! Copies of one original have the same layout of memory and the same seed of hashes. So an original is
//! used for a while only, and then another takes its place. See docs/adr/0015.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use sandbox_core::{Limits, StagePlan, with_causes};
use sandbox_linux::seccomp::Notifications;
use sandbox_linux::{Copy, CopyInto, Original, Walls, can_copy};
use sandbox_protocol::launcher::SlotKind;

use super::host::Host;
use super::order;
use super::retire::take_down;
use super::slots::{Maker, ReadySlot};

/// So many copies are made of one.
const MAX_FORKS: usize = 256;
/// For so long.
const MAX_LIFETIME: Duration = Duration::from_mins(10);
/// A runtime on a busy host needs seconds to start.
const FORK_TIMEOUT: Duration = Duration::from_secs(30);

/// The original of one shape, at any time one of them.
#[derive(Debug, Default)]
pub(crate) struct Originals(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    current: Option<Current>,
    /// Why none is tried any more.
    failure: Option<String>,
}

#[derive(Debug)]
struct Current {
    original: Arc<Original>,
    copies: usize,
    since: Instant,
}

impl Originals {
    /// Whether copies can be made here: they put up every wall or none.
    pub(crate) fn are_possible(&self, host: &Host) -> bool {
        can_copy() && host.walls == Walls::all() && self.lock().failure.is_none()
    }

    /// Whether one waits to be copied.
    pub(crate) fn is_there(&self) -> bool {
        // While one is being started, nobody should have to wait for it.
        self.0.try_lock().is_ok_and(|state| state.current.is_some() && state.failure.is_none())
    }

    /// Why there are no copies, if there could be some.
    pub(crate) fn failure(&self) -> Option<String> {
        self.0.try_lock().ok().and_then(|state| state.failure.clone())
    }

    /// Tries no more.
    pub(crate) fn give_up(&self, reason: String) {
        self.lock().failure = Some(reason);
    }

    /// A slot with a copy in it, which is about to wait.
    pub(crate) fn copy(
        &self,
        host: &Host,
        maker: &Maker,
        limits: &Limits,
        plan: &StagePlan,
    ) -> Result<ReadySlot, String> {
        let original = self.current(host, maker, plan)?;
        let prepared = maker.prepare_ahead(SlotKind::Adopting, limits);
        let mut ready = prepared.map_err(|error| with_causes(&error))?;
        match copy_into(&original, &mut ready) {
            Ok(()) => Ok(ready),
            Err(reason) => {
                take_down(ready.slot);
                Err(reason)
            }
        }
    }

    /// The original that is to be used now.
    fn current(
        &self,
        host: &Host,
        maker: &Maker,
        plan: &StagePlan,
    ) -> Result<Arc<Original>, String> {
        let mut state = self.lock();
        let is_used_up = |current: &Current| {
            current.copies >= MAX_FORKS || current.since.elapsed() >= MAX_LIFETIME
        };
        if state.current.as_ref().is_none_or(is_used_up) {
            let started = order::start_original(host, maker, plan, FORK_TIMEOUT);
            let original = Arc::new(started.map_err(|error| with_causes(&error))?);
            state.current = Some(Current { original, copies: 0, since: Instant::now() });
        }
        let current = state.current.as_mut().ok_or("no runtime could be started")?;
        current.copies += 1;
        Ok(Arc::clone(&current.original))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn copy_into(original: &Original, ready: &mut ReadySlot) -> Result<(), String> {
    use std::os::fd::AsFd;
    let tools = ready.tools.as_mut().ok_or("its tools are gone")?;
    let ((stdin, _), (stdout, stderr)) = (tools.input.ends(), tools.pipes.writers());
    let copied = original.copy(&CopyInto {
        init: ready.slot.init.as_fd(),
        cgroup: ready.slot.cgroup.as_ref(),
        streams: [stdin, stdout, stderr],
        rules: ready.slot.rules.as_ref().ok_or("it has no rules")?.as_fd(),
    });
    let Copy { process, denied_calls } = copied.map_err(|error| with_causes(&error))?;
    tools.denied_calls = Notifications::new(denied_calls).ok();
    ready.copy = process;
    ready.slot.rules = None;
    Ok(())
}
