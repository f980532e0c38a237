//! A process of an instance: starting it, signals, and its end.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::Signal;
use sandbox_core::{
    BackendError, CancelToken, Observer, Process, ProcessLimits, ProcessOutcome, ProcessSpec,
};
use sandbox_linux::cgroup::{OomWatch, Usage};
use sandbox_linux::{Received, Shim};
use sandbox_protocol::notice::Notice;

use super::super::descriptors::{Budget, Permit};
use super::super::exec_request;
use super::super::slots::launch_failed;
use super::super::stdin::{Feed, Input};
use super::output::{OutputReaders, Pipes};
use super::{NativeInstance, Sandbox, killed, watch};
use crate::error::failed;
use crate::supervise::Cause;

/// Descriptors of one process: its streams, its socket and pidfd, the listener for denied calls, and
/// those of its supervision.
const PER_PROCESS: usize = 14;
/// Time that a shim has to kill everything and to report. It shares the CPU limit of the instance,
/// and may be delayed by it.
pub(super) const SHIM_GRACE: Duration = Duration::from_secs(2);

/// A process that was started.
pub(crate) struct NativeProcess<'i, 'a> {
    instance: &'i NativeInstance<'a>,
    pub(super) limits: ProcessLimits,
    pub(super) shim: Shim,
    /// `None` after supervision began.
    begun: Mutex<Option<Begun<'a>>>,
    _permit: Arc<Permit>,
}

/// What supervision starts with.
pub(super) struct Begun<'a> {
    pub(super) sandbox: Arc<Sandbox<'a>>,
    pub(super) output: OutputReaders,
    pub(super) oom: Option<OomWatch>,
    /// Counters of the instance when the process was started.
    pub(super) before: Usage,
    /// Its number among the processes of the instance, if it was alone at its start.
    pub(super) number: Option<u64>,
}

impl<'i, 'a> NativeProcess<'i, 'a> {
    pub(super) fn start(
        instance: &'i NativeInstance<'a>,
        spec: &ProcessSpec,
        limits: ProcessLimits,
    ) -> Result<Self, BackendError> {
        let NativeInstance { host, plan, .. } = instance;
        let permit = Budget::of_process().acquire(&CancelToken::new())?.ok_or_else(killed)?;
        permit.shrink(PER_PROCESS);
        let sandbox = instance.sandbox()?;
        let slot = &sandbox.slot.slot;
        let streams = Input::open().and_then(|input| Ok((input, Pipes::open()?)));
        let (input, pipes) =
            streams.map_err(|error| failed("make the pipes of a process", error))?;
        if host.has_own_ids {
            let given = input.give_to(slot.owner).and_then(|()| pipes.give_to(slot.owner));
            given.map_err(|error| failed("give the program its streams", error))?;
        }
        let counters =
            slot.cgroup.usage().and_then(|before| Ok((before, slot.cgroup.oom_watch()?)));
        let (before, oom) =
            counters.map_err(|error| failed("read what the sandbox used", error))?;
        let env = exec_request::environment(spec);
        let request = exec_request::of_process(host, plan, spec, &env);
        let ((stdin, _), (stdout, stderr)) = (input.ends(), pipes.writers());
        let number = instance.add_process(&sandbox)?;
        let shim = slot.start_program(&request, [stdin, stdout, stderr]).map_err(|error| {
            instance.remove_process();
            launch_failed("start a process", error)
        })?;
        let begun = Begun { sandbox, output: pipes.into_readers(), oom, before, number };
        // From here on, dropping it ends the process.
        let process =
            Self { instance, limits, shim, begun: Mutex::new(Some(begun)), _permit: permit };
        input.prepare(&spec.stdin)?.map_or(Ok(()), Feed::begin)?;
        Ok(process)
    }

    pub(super) fn instance(&self) -> &'i NativeInstance<'a> {
        self.instance
    }

    /// Ends the process if it was not supervised to its end.
    fn end(&self) {
        // It may have ended.
        let _ = self.shim.end();
        let deadline = Instant::now() + SHIM_GRACE;
        while wait_for_notice(self.shim.socket(), deadline) {
            match self.shim.try_receive() {
                Ok(Received::Notice(Notice::Exited(_), _)) => return,
                Ok(Received::Notice(Notice::Failed(_), _) | Received::Closed) | Err(_) => break,
                Ok(Received::Notice(..) | Received::Nothing) => {}
            }
        }
        // Nobody knows what is left of it.
        self.instance.end(Cause::Cancelled);
    }
}

impl Process for NativeProcess<'_, '_> {
    fn wait(
        &self,
        observer: &mut dyn Observer,
        cancel: &CancelToken,
    ) -> Result<ProcessOutcome, BackendError> {
        let begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner).take();
        let begun = begun.ok_or_else(|| {
            BackendError::Refused("the process was already waited for".to_owned())
        })?;
        watch::watch(self, begun, observer, cancel)
    }

    fn signal(&self, signal: i32) -> Result<(), BackendError> {
        let sent = match Signal::from_named_raw(signal) {
            // The shim forwards the others, and cannot catch these two.
            Some(Signal::KILL) => self.shim.end(),
            None | Some(Signal::STOP | Signal::CHILD) => {
                let reason = format!("signal {signal} cannot be sent to a process of a sandbox");
                return Err(BackendError::Refused(reason));
            }
            Some(signal) => self.shim.signal(signal),
        };
        match sent {
            // It has ended.
            Ok(()) | Err(Errno::SRCH) => Ok(()),
            Err(error) => Err(failed("signal a process", error)),
        }
    }
}

impl Drop for NativeProcess<'_, '_> {
    fn drop(&mut self) {
        if self.begun.get_mut().unwrap_or_else(PoisonError::into_inner).is_some() {
            self.end();
        }
        self.shim.release();
        self.instance.remove_process();
    }
}

/// Waits for a notice or the end of the socket; false if there is neither in time.
fn wait_for_notice(socket: BorrowedFd<'_>, deadline: Instant) -> bool {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout =
            Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: left.subsec_nanos().into() };
        match poll(&mut [PollFd::from_borrowed_fd(socket.as_fd(), PollFlags::IN)], Some(&timeout)) {
            Err(Errno::INTR) => {}
            polled => return polled.is_ok_and(|count| count > 0),
        }
    }
}
