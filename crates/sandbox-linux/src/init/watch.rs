//! Waiting for a program's end, and for everything it left behind.

use std::sync::atomic::Ordering;

use rustix::process::{Pid, Signal, WaitOptions, kill_process_group};
use sandbox_core::Protection;
use sandbox_protocol::Message as _;
use sandbox_protocol::notice::{ExitNotice, Notice};

use super::figures::{Before, IoCounters};
use crate::clock;
use crate::syscall::{self, SharedNumber, Whose};
use crate::walls::Walls;

/// Waits for both.
pub(super) fn watch(
    program: Pid,
    signals: &libc::sigset_t,
    started: &SharedNumber,
    walls: Walls,
) -> ExitNotice {
    let mut exit = ExitNotice::default();
    let mut ended = false;
    while !ended {
        match syscall::next_signal(signals) {
            libc::SIGCHLD => ended = reap(program, &mut exit),
            signal if signal == syscall::end_everything_signal() => kill_all(program, walls),
            signal => {
                // The program's own group gets what a terminal would have sent it.
                if let Some(signal) = Signal::from_named_raw(signal) {
                    let _ = kill_process_group(program, signal);
                }
            }
        }
    }
    let started = started.get().load(Ordering::Relaxed);
    exit.wall_nanos = clock::monotonic_nanos().saturating_sub(started);
    kill_all(program, walls);
    // Waiting for each is what adds their CPU time and I/O to ours, where it can be read.
    while rustix::process::wait(WaitOptions::empty()).is_ok() {}
    let children = syscall::cpu_times(Whose::Children);
    let own = syscall::cpu_times(Whose::Mine);
    exit.user_micros = children.user_micros;
    exit.system_micros = children.system_micros;
    exit.max_rss_kib = children.max_rss_kib;
    exit.init_user_micros = own.user_micros;
    exit.init_system_micros = own.system_micros;
    exit
}

/// Goes through the end of a program once: a copy of a process has its code only when it comes to it, and that
/// would be while somebody waits.
pub(super) fn rehearse(counters: Option<&IoCounters>) {
    let mut exit = ExitNotice::default();
    reap(Pid::INIT, &mut exit);
    exit.user_micros = syscall::cpu_times(Whose::Children).user_micros;
    let exit = Before::now(counters, None).subtract(exit, counters);
    drop(Notice::Exited(exit).encode());
}

/// Takes everything that has ended; true once the program itself is among it.
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

/// Ends every process of the sandbox but this one.
fn kill_all(program: Pid, walls: Walls) {
    if walls.has(Protection::PidNamespace) {
        // As process 1 of a namespace, "everything" is everything in it and nothing else.
        // SAFETY: kill takes two numbers.
        unsafe { libc::kill(-1, libc::SIGKILL) };
    } else {
        // Without the namespace that would reach the host: only the program's own group.
        let _ = kill_process_group(program, Signal::KILL);
    }
}
