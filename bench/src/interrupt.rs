//! Ends a benchmark in order when a signal asks for it: servers and engines that it started are stopped first.

use std::io;
use std::path::Path;
use std::process;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use sandbox_tests::wait::wait_for;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// A process that has not ended by then is killed.
const STOP_TIMEOUT: Duration = Duration::from_secs(20);
/// What a shell says of a process that ended by a signal, less the signal.
const SIGNALLED: i32 = 128;

static STARTED: Mutex<Started> = Mutex::new(Started { next: 0, cleanups: Vec::new() });

struct Started {
    next: u64,
    cleanups: Vec<(u64, Box<dyn FnOnce() + Send>)>,
}

/// Something that is cleaned up on a signal, until this is dropped.
pub(crate) struct OnInterrupt(u64);

impl OnInterrupt {
    /// Has this done if a signal ends the benchmark. What was registered last is done first.
    pub(crate) fn run(cleanup: impl FnOnce() + Send + 'static) -> Self {
        let mut started = lock();
        let number = started.next;
        started.next += 1;
        started.cleanups.push((number, Box::new(cleanup)));
        Self(number)
    }

    /// Has a directory removed.
    pub(crate) fn remove(directory: &Path) -> Self {
        let directory = directory.to_owned();
        Self::run(move || {
            let _ = std::fs::remove_dir_all(directory);
        })
    }
}

impl Drop for OnInterrupt {
    fn drop(&mut self) {
        lock().cleanups.retain(|(number, _)| *number != self.0);
    }
}

fn lock() -> MutexGuard<'static, Started> {
    STARTED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From now on, SIGINT, SIGTERM and SIGHUP clean up before they end this process.
pub(crate) fn listen() -> io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    let wait = move || {
        let Some(signal) = signals.forever().next() else { return };
        // Locked until the end: nothing more is started.
        let mut started = lock();
        while let Some((_, cleanup)) = started.cleanups.pop() {
            cleanup();
        }
        #[expect(
            clippy::disallowed_methods,
            reason = "other threads are in the middle of runs; launchers end the sandboxes of a process that is gone"
        )]
        process::exit(SIGNALLED + signal);
    };
    thread::Builder::new().name("signals".into()).spawn(wait)?;
    Ok(())
}

/// Asks a child of this process to stop, and waits until it has.
pub(crate) fn stop_child(id: u32) {
    let Some(id) = i32::try_from(id).ok().and_then(Pid::from_raw) else { return };
    // An error: it was waited for already, and its number may be another's.
    let ended = || !matches!(waitpid(Some(id), WaitOptions::NOHANG), Ok(None));
    if ended() {
        return;
    }
    let _ = kill_process(id, Signal::TERM);
    if wait_for(STOP_TIMEOUT, || ended().then_some(())).is_none() {
        let _ = kill_process(id, Signal::KILL);
        let _ = waitpid(Some(id), WaitOptions::empty());
    }
}
