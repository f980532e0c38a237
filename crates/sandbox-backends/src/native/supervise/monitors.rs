//! Checks on a running sandbox besides its time limits: file locks, kernel memory of its network, and
//! descriptors of the supervisor.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use sandbox_core::{Protection, StagePlan};
use sandbox_linux::StepError;
use sandbox_linux::cgroup::Cgroup;

use super::super::descriptors::PER_LONG_RUNNING;
use super::super::host::Host;
use super::super::network_memory::{NetworkMemory, UNACCEPTED_BYTES};
use super::super::slots::ReadySlot;
use super::super::usage::process_id;
use crate::lock_limit::{LockLimit, SAMPLE_INTERVAL};

/// The control files of the cgroup are closed after this time, until the program ends.
const LONG_RUNNING_AFTER: Duration = Duration::from_secs(1);

/// The checks of one sandbox; none of them runs before its program starts.
#[derive(Default)]
pub(super) struct Monitors {
    lock_limit: Option<LockLimit>,
    /// When to start counting locks.
    lock_limit_start: Option<Instant>,
    network_memory: Option<NetworkMemory>,
    /// When to close descriptors that are not needed while the program runs.
    descriptor_release: Option<Instant>,
}

impl Monitors {
    /// Schedules the checks of a program that starts now.
    pub(super) fn start(host: &Host, plan: &StagePlan, init: BorrowedFd<'_>, now: Instant) -> Self {
        let network_memory = host
            .limits_network_memory(plan)
            .map(|limit| NetworkMemory::new(now, process_id(init), UNACCEPTED_BYTES, limit));
        Self {
            lock_limit: None,
            lock_limit_start: host.has(Protection::Memory).then_some(now + SAMPLE_INTERVAL),
            network_memory,
            // Usage samples need all control files.
            descriptor_release: plan.usage_interval.is_none().then_some(now + LONG_RUNNING_AFTER),
        }
    }

    /// Readable once the sandbox holds too many locks.
    pub(super) fn lock_alarm(&self) -> Option<BorrowedFd<'_>> {
        self.lock_limit.as_ref().map(LockLimit::alarm)
    }

    /// When to call [`limit_locks`](Self::limit_locks).
    pub(super) fn lock_limit_start(&self) -> Option<Instant> {
        self.lock_limit_start
    }

    /// When to call [`exceeds_network_memory`](Self::exceeds_network_memory).
    pub(super) fn next_network_check(&self) -> Option<Instant> {
        self.network_memory.as_ref().map(NetworkMemory::next)
    }

    /// When to call [`release_descriptors`](Self::release_descriptors).
    pub(super) fn descriptor_release(&self) -> Option<Instant> {
        self.descriptor_release
    }

    /// Closes the control files of a long-running program's cgroup, if it is time.
    pub(super) fn release_descriptors(&mut self, now: Instant, slot: &ReadySlot) {
        if self.descriptor_release.is_some_and(|at| at <= now) {
            self.descriptor_release = None;
            slot.slot.cgroup.close_files();
            slot.permit.shrink(PER_LONG_RUNNING);
        }
    }

    /// Whether the network holds more kernel memory than allowed, if it is time to check.
    pub(super) fn exceeds_network_memory(&mut self, now: Instant, cgroup: &dyn Cgroup) -> bool {
        let is_due = |memory: &&mut NetworkMemory| memory.next() <= now;
        let memory = self.network_memory.as_mut().filter(is_due);
        memory.is_some_and(|memory| memory.is_over(now, cgroup))
    }

    /// Starts to count the locks of the sandbox, if it is time.
    pub(super) fn limit_locks(
        &mut self,
        now: Instant,
        init: &OwnedFd,
        plan: &StagePlan,
    ) -> Result<(), StepError> {
        if self.lock_limit_start.is_none_or(|at| at > now) {
            return Ok(());
        }
        self.lock_limit_start = None;
        match process_id(init.as_fd()).ok_or(Errno::SRCH.into()).and_then(LockLimit::start) {
            Ok(limit) => self.lock_limit = Some(limit),
            // Its locks are released with it.
            Err(_) if has_ended(init) => {}
            Err(_) if plan.allow_missing.contains(&Protection::Memory) => {}
            Err(error) => {
                let cause = Errno::from_io_error(&error).unwrap_or(Errno::IO);
                return Err(StepError {
                    step: "count the file locks of the sandbox".to_owned(),
                    cause,
                });
            }
        }
        Ok(())
    }
}

fn has_ended(process: &OwnedFd) -> bool {
    let mut watched = [PollFd::new(process, PollFlags::IN)];
    poll(&mut watched, Some(&Timespec::default())).is_ok_and(|count| count > 0)
}
