//! Waits for the program and for all processes that it left behind.

use std::sync::atomic::Ordering;

use rustix::process::{Pid, Signal, WaitOptions, kill_process_group};
use sandbox_core::Protection;
use sandbox_protocol::Message as _;
use sandbox_protocol::notice::{ExitNotice, Notice};

use super::usage::{Baseline, IoCounters};
use crate::clock;
use crate::protection_set::ProtectionSet;
use crate::syscall::{self, SharedNumber, UsageOf};

/// Waits for both.
pub(super) fn watch(
    program: Pid,
    signals: &libc::sigset_t,
    started: &SharedNumber,
    protections: ProtectionSet,
) -> ExitNotice {
    let mut exit = ExitNotice::default();
    let mut ended = false;
    while !ended {
        match syscall::next_signal(signals) {
            libc::SIGCHLD => ended = reap(program, &mut exit),
            signal if signal == syscall::end_everything_signal() => kill_all(program, protections),
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
    kill_all(program, protections);
    // Reaping adds their CPU time and I/O to this process's counters.
    while rustix::process::wait(WaitOptions::empty()).is_ok() {}
    let children = syscall::cpu_times(UsageOf::Children);
    let own = syscall::cpu_times(UsageOf::Process);
    exit.user_micros = children.user_micros;
    exit.system_micros = children.system_micros;
    exit.max_rss_kib = children.max_rss_kib;
    exit.init_user_micros = own.user_micros;
    exit.init_system_micros = own.system_micros;
    exit
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

/// Kills every process of the sandbox but this one.
fn kill_all(program: Pid, protections: ProtectionSet) {
    if protections.has(Protection::PidNamespace) {
        // For process 1 of a PID namespace, -1 means all processes in it.
        // SAFETY: kill takes two numbers.
        unsafe { libc::kill(-1, libc::SIGKILL) };
    } else {
        // Without a PID namespace, -1 would reach the host's processes: only the program's process
        // group.
        let _ = kill_process_group(program, Signal::KILL);
    }
}
