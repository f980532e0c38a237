//! A runtime's word that it is about to end, with code 0 and nothing left to do.
//!
//! What the kernel then does to end a process, above all giving its memory back, takes longer than a short
//! program does. So the runtime says that it ends by a call that the filter stops (see `is_farewell`). It
//! is never answered: from then on nothing runs in the sandbox, and it is killed there when the sandbox is
//! taken down, after whoever waited has the report; at once, if it has other threads. The word needs no trust: a
//! program that says that it has ended has ended, and how it did was its own choice anyway.

use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use sandbox_linux::Slot;
use sandbox_protocol::notice::ExitNotice;

use super::host::OWN_PROCESSES;
use super::slots::ReadySlot;
use super::usage::{bytes_moved_by, id_inside, process_id};

/// The process of a runtime that waits, and what it had read and written before its program came.
#[derive(Debug)]
pub(crate) struct Runtime {
    process: u32,
    /// The same, to be signalled: a number may be another process's by then.
    handle: OwnedFd,
    init: u32,
    read: u64,
    written: u64,
}

impl Runtime {
    /// Finds it; none without a cgroup that tells, or if more is there than the runtime.
    pub(crate) fn find(ready: &ReadySlot) -> Option<Self> {
        let slot = &ready.slot;
        let init = process_id(slot.init.as_fd())?;
        let mut processes = slot.cgroup.processes().ok()?;
        processes.retain(|process| *process != init);
        if ready.copy != 0 {
            // Whoever made the copy may still be on its way out.
            processes.retain(|process| id_inside(*process) == Some(ready.copy));
        }
        let &[process] = processes.as_slice() else { return None };
        let handle = pidfd_open(Pid::from_raw(process.cast_signed())?, PidfdFlags::empty()).ok()?;
        let (read, written) = bytes_moved_by(process)?;
        let found = Self { process, handle, init, read, written };
        // It is still there, so that what was opened is it.
        slot.cgroup.processes().is_ok_and(|now| now.contains(&process)).then_some(found)
    }

    fn is_the_only_process(&self, slot: &Slot) -> bool {
        let is_known = |process: &u32| [self.process, self.init].contains(process);
        slot.cgroup.processes().is_ok_and(|processes| processes.iter().all(is_known))
    }
}

/// How a runtime ended one of whose threads says that it does. None if it has to end by itself: there are other
/// processes, which are to end with it.
pub(crate) fn exit_of(ready: &ReadySlot, thread: u32, wall: Duration) -> Option<ExitNotice> {
    let runtime = ready.runtime.as_ref()?;
    let tasks = ready.slot.cgroup.tasks().ok()?;
    let is_alone = tasks == OWN_PROCESSES + 1 && thread == runtime.process;
    if !is_alone && !runtime.is_the_only_process(&ready.slot) {
        return None;
    }
    let (read, written) = bytes_moved_by(runtime.process)?;
    if !is_alone {
        // Its other threads must not go on. What a last one does in the microsecond until it hears of this is
        // done before files are collected, which trusts nothing that it finds. If one of them has started a
        // process meanwhile, init sees to all of them and says how it ended.
        pidfd_send_signal(&runtime.handle, Signal::KILL).ok()?;
        if !runtime.is_the_only_process(&ready.slot) {
            return None;
        }
    }
    Some(ExitNotice {
        code: Some(0),
        wall_nanos: u64::try_from(wall.as_nanos()).unwrap_or(u64::MAX),
        read_bytes: read.saturating_sub(runtime.read),
        written_bytes: written.saturating_sub(runtime.written),
        ..ExitNotice::default()
    })
}
