//! Limits that all processes of an instance share and that the kernel does not enforce: file locks,
//! and the kernel memory of its network. A thread of the instance enforces them, whether or not
//! somebody waits for a process.

use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;
use rustix::process::{Signal, pidfd_send_signal};
use sandbox_core::{BackendError, SandboxSpec};

use super::{Cause, LockLimit, NetworkMemory};
use crate::error::failed;

/// Process 1 of an instance, whose end is that of every process, and why it was killed.
pub(crate) struct InstanceInit {
    process: OwnedFd,
    reason: Mutex<Option<KillReason>>,
}

/// Why every process of an instance was killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KillReason {
    /// A limit of all processes together, or the client.
    Cause(Cause),
    /// It was not known any more what runs in the instance.
    Failure,
}

impl InstanceInit {
    /// `process` is its pidfd.
    pub(crate) fn new(process: OwnedFd) -> Arc<Self> {
        Arc::new(Self { process, reason: Mutex::default() })
    }

    /// Its pidfd.
    pub(crate) fn process(&self) -> BorrowedFd<'_> {
        self.process.as_fd()
    }

    /// Kills every process; the first reason counts.
    pub(crate) fn kill(&self, reason: KillReason) {
        // First, so that it is known when the processes end.
        self.reason.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(reason);
        // It may be gone.
        let _ = pidfd_send_signal(&self.process, Signal::KILL);
    }

    /// Why every process was killed, if they were.
    pub(crate) fn kill_reason(&self) -> Option<KillReason> {
        *self.reason.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Refuses a specification with a limit that nothing would enforce.
pub(crate) fn refuse_unenforced(sandbox: &SandboxSpec) -> Result<(), BackendError> {
    if sandbox.limits.cpu_time().is_some() {
        let reason = "a sandbox for several processes has no CPU time limit of its own: \
                      limit the CPU time of each process";
        return Err(BackendError::Refused(reason.to_owned()));
    }
    Ok(())
}

/// Enforces the limits until dropped.
pub(crate) struct InstanceLimits {
    stop: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

impl InstanceLimits {
    /// Starts to enforce those that are given.
    pub(crate) fn enforce(
        init: &Arc<InstanceInit>,
        locks: Option<LockLimit>,
        network: Option<NetworkMemory>,
    ) -> Result<Self, BackendError> {
        const STEP: &str = "watch the limits of the sandbox";
        let stop = eventfd(0, EventfdFlags::CLOEXEC).map_err(|error| failed(STEP, error))?;
        let stop = Arc::new(stop);
        let (init, stopped) = (Arc::clone(init), Arc::clone(&stop));
        let thread = thread::Builder::new().name("instance-limits".to_owned());
        let thread = thread.spawn(move || {
            if is_exceeded(&init, &stopped, locks.as_ref(), network) {
                init.kill(KillReason::Cause(Cause::Memory));
            }
        });
        let thread = thread.map_err(|error| failed(STEP, error))?;
        Ok(Self { stop, thread: Some(thread) })
    }
}

impl Drop for InstanceLimits {
    fn drop(&mut self) {
        // The counter cannot overflow: it is written once.
        let _ = rustix::io::write(&*self.stop, &1_u64.to_ne_bytes());
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Waits until a limit is exceeded; false if the instance ended, or the limits are over.
fn is_exceeded(
    init: &InstanceInit,
    stop: &OwnedFd,
    locks: Option<&LockLimit>,
    mut network: Option<NetworkMemory>,
) -> bool {
    loop {
        let mut watched =
            vec![PollFd::new(stop, PollFlags::IN), PollFd::new(&init.process, PollFlags::IN)];
        let alarm = locks.map(|limit| PollFd::from_borrowed_fd(limit.alarm(), PollFlags::IN));
        watched.extend(alarm);
        let next = network.as_ref().map(NetworkMemory::next);
        let left = next.map(|next| next.saturating_duration_since(Instant::now()));
        let timeout = left.and_then(|left| Timespec::try_from(left).ok());
        match poll(&mut watched, timeout.as_ref()) {
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            // What cannot be watched is taken for exceeded.
            Err(_) => return true,
        }
        let is_ready =
            |number: usize| watched.get(number).is_some_and(|fd| !fd.revents().is_empty());
        if is_ready(0) || is_ready(1) {
            return false;
        }
        let now = Instant::now();
        let network = network.as_mut().filter(|network| network.next() <= now);
        if is_ready(2) || network.is_some_and(|network| network.is_over(now)) {
            return true;
        }
    }
}
