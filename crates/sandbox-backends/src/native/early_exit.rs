//! Early exit: a runtime announces that it is about to exit with code 0.
//!
//! Exiting takes the kernel longer than a short program runs, mainly to free its memory. So the
//! runtime announces its exit with a system call that the filter stops (see `is_early_exit`). The
//! call is never answered: from then on nothing runs in the sandbox, and the runtime is killed when
//! the sandbox is torn down, after the caller has the report. If it has other threads, it is killed
//! immediately. The announcement needs no trust: the program decides how it exits anyway.

use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use sandbox_linux::Slot;
use sandbox_protocol::notice::ExitNotice;

use super::host::OWN_PROCESSES;
use super::slots::ReadySlot;
use crate::process::{bytes_moved_by, id_inside, process_id};

/// The process of a waiting runtime, and what it had read and written before its program arrived.
#[derive(Debug)]
pub(crate) struct WaitingRuntime {
    process: u32,
    /// Refers to the same process for signals: the PID may be reused.
    handle: OwnedFd,
    init: u32,
    read: u64,
    written: u64,
}

impl WaitingRuntime {
    /// Finds the process; `None` if the cgroup cannot list processes, or if there are others.
    pub(crate) fn find(ready: &ReadySlot) -> Option<Self> {
        let slot = &ready.slot;
        let init = process_id(slot.init.as_fd())?;
        let mut processes = slot.cgroup.processes().ok()?;
        processes.retain(|process| *process != init);
        if ready.forked_pid != 0 {
            // The process that forked it may not have exited yet.
            processes.retain(|process| id_inside(*process) == Some(ready.forked_pid));
        }
        let &[process] = processes.as_slice() else { return None };
        let handle = pidfd_open(Pid::from_raw(process.cast_signed())?, PidfdFlags::empty()).ok()?;
        let (read, written) = bytes_moved_by(process)?;
        let found = Self { process, handle, init, read, written };
        // Confirms that the descriptor refers to the same process.
        slot.cgroup.processes().is_ok_and(|now| now.contains(&process)).then_some(found)
    }

    fn is_the_only_process(&self, slot: &Slot) -> bool {
        let is_known = |process: &u32| [self.process, self.init].contains(process);
        slot.cgroup.processes().is_ok_and(|processes| processes.iter().all(is_known))
    }
}

/// The exit of a runtime one of whose threads announced it. `None` if the runtime must exit by
/// itself, because other processes must end with it.
pub(crate) fn exit_of(ready: &ReadySlot, thread: u32, wall_time: Duration) -> Option<ExitNotice> {
    let runtime = ready.runtime.as_ref()?;
    let tasks = ready.slot.cgroup.tasks().ok()?;
    let is_alone = tasks == OWN_PROCESSES + 1 && thread == runtime.process;
    if !is_alone && !runtime.is_the_only_process(&ready.slot) {
        return None;
    }
    let (read, written) = bytes_moved_by(runtime.process)?;
    if !is_alone {
        // Stops its other threads. What they do until then happens before files are collected, and
        // collecting trusts nothing. If one of them has started a process meanwhile, init ends all
        // of them and reports the exit.
        pidfd_send_signal(&runtime.handle, Signal::KILL).ok()?;
        if !runtime.is_the_only_process(&ready.slot) {
            return None;
        }
    }
    Some(ExitNotice {
        code: Some(0),
        wall_nanos: u64::try_from(wall_time.as_nanos()).unwrap_or(u64::MAX),
        read_bytes: read.saturating_sub(runtime.read),
        written_bytes: written.saturating_sub(runtime.written),
        ..ExitNotice::default()
    })
}
