//! Waits for the program and for all processes that it left behind.

use std::sync::atomic::Ordering;

use rustix::process::{Pid, Signal, WaitOptions, kill_process_group};
use sandbox_core::Protection;
use sandbox_protocol::Message as _;
use sandbox_protocol::notice::{ExitNotice, Notice};

use super::children::Children;
use super::usage::{Baseline, IoCounters};
use crate::clock;
use crate::protection_set::ProtectionSet;
use crate::step::StepError;
use crate::syscall::{self, SharedNumber, UsageOf};

/// Which processes end with the program.
pub(super) enum Reach {
    /// Every process of the PID namespace, of which this process is the first.
    Namespace,
    /// The program's process group only: without a PID namespace, there are the host's processes.
    Group,
    /// What descends from this process, which is a subreaper: there are other programs.
    Descendants(Children),
}

/// Waits for both.
pub(super) fn watch(
    program: Pid,
    signals: &libc::sigset_t,
    started: &SharedNumber,
    reach: &Reach,
) -> Result<ExitNotice, StepError> {
    let mut exit = ExitNotice::default();
    let mut ended = false;
    while !ended {
        match syscall::next_signal(signals) {
            libc::SIGCHLD => ended = reap(program, &mut exit),
            signal if signal == syscall::end_everything_signal() => reach.kill(program)?,
            signal => {
                // Forward the signal to the program's process group, like a terminal does.
                if let Some(signal) = Signal::from_named_raw(signal) {
                    let _ = kill_process_group(program, signal);
                }
            }
        }
    }
    let started = started.get().load(Ordering::Relaxed);
    exit.wall_nanos = clock::monotonic_nanos().saturating_sub(started);
    // Reaping adds their CPU time and I/O to this process's counters.
    reach.end(program, signals)?;
    let children = syscall::cpu_times(UsageOf::Children);
    let own = syscall::cpu_times(UsageOf::Process);
    exit.user_micros = children.user_micros;
    exit.system_micros = children.system_micros;
    exit.max_rss_kib = children.max_rss_kib;
    exit.init_user_micros = own.user_micros;
    exit.init_system_micros = own.system_micros;
    Ok(exit)
}

/// Runs the code that handles the program's end once: a forked process gets its memory pages on
/// first access, which would otherwise happen while a caller waits.
pub(super) fn prefault(counters: Option<&IoCounters>) {
    let mut exit = ExitNotice::default();
    reap(Pid::INIT, &mut exit);
    exit.user_micros = syscall::cpu_times(UsageOf::Children).user_micros;
    let exit = Baseline::now(counters, None).subtract(exit, counters);
    drop(Notice::Exited(exit).encode());
}

/// Reaps all ended processes; true if the program is one of them.
fn reap(program: Pid, exit: &mut ExitNotice) -> bool {
    let mut ended = false;
    while let Ok(Some((pid, status))) = rustix::process::wait(WaitOptions::NOHANG) {
        if pid == program {
            exit.code = status.exit_status();
            exit.signal = status.terminating_signal();
            ended = true;
        }
    }
    ended
}

impl Reach {
    /// For the init of a sandbox with one program.
    pub(super) fn of_init(protections: ProtectionSet) -> Self {
        if protections.has(Protection::PidNamespace) { Self::Namespace } else { Self::Group }
    }

    /// Kills the processes that are there now.
    fn kill(&self, program: Pid) -> Result<(), StepError> {
        match self {
            Self::Namespace => {
                // For process 1 of a PID namespace, -1 means all processes in it.
                // SAFETY: kill takes two numbers.
                unsafe { libc::kill(-1, libc::SIGKILL) };
            }
            Self::Group => {
                let _ = kill_process_group(program, Signal::KILL);
            }
            Self::Descendants(children) => children.kill()?,
        }
        Ok(())
    }

    /// Kills and reaps them until none is left.
    fn end(&self, program: Pid, signals: &libc::sigset_t) -> Result<(), StepError> {
        if let Self::Descendants(children) = self {
            return children.end(signals);
        }
        self.kill(program)?;
        while rustix::process::wait(WaitOptions::empty()).is_ok() {}
        Ok(())
    }
}
