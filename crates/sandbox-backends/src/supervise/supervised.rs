//! What a backend tells the supervisor loop about a program that it runs.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use sandbox_core::BackendError;

use super::{Cause, Counters, LockLimit, NetworkMemory, Supervision};

/// A program and the sandbox that it runs in.
pub(crate) trait Supervised {
    /// What a descriptor is for.
    type Source: Copy;

    /// What the backend could not do if the program never started, as the rest of "could not …".
    const START: &'static str;

    /// Time to kill from inside and report, before everything is killed from outside.
    const KILL_GRACE: Duration = Duration::from_millis(300);

    /// Whether other processes share the sandbox: then its memory limits end all of them.
    const IS_SHARED: bool = false;

    /// Descriptors to wait for until they are readable. Those that are ready are handled in this
    /// order.
    fn sources(&self) -> impl Iterator<Item = (Self::Source, BorrowedFd<'_>)>;

    /// Handles a readable descriptor and reports what it means to `supervision`.
    fn handle(
        &mut self,
        source: Self::Source,
        supervision: &mut Supervision<'_>,
    ) -> Result<(), BackendError>;

    /// When to call [`on_time`](Self::on_time) at the latest.
    fn next_deadline(&self) -> Option<Instant> {
        None
    }

    /// Does what is due. Called whenever the loop checks its clocks.
    fn on_time(
        &mut self,
        now: Instant,
        supervision: &mut Supervision<'_>,
    ) -> Result<(), BackendError> {
        let _ = (now, supervision);
        Ok(())
    }

    /// Reports what is left after everything has ended.
    fn drain(&mut self, supervision: &mut Supervision<'_>) {
        let _ = supervision;
    }

    /// Sends SIGTERM to the program.
    fn terminate(&mut self);

    /// Kills the program and everything it started, from inside, where its end can still be
    /// reported.
    fn kill_program(&mut self);

    /// Kills everything, from outside: what kills from inside shares the program's limits and might
    /// be delayed by them.
    fn kill_sandbox(&mut self, cause: Cause);

    /// Whether nothing is left of what was killed.
    fn is_gone(&self) -> bool;

    /// The counters of its cgroup.
    fn counters(&self) -> Counters<'_>;

    /// CPU time that counts against its limit.
    fn cpu_time(&self) -> Duration {
        self.counters().cpu_time()
    }

    /// A monitor of the kernel memory that its network holds, if it has a network of its own.
    fn network_memory(&self, now: Instant) -> Option<NetworkMemory> {
        let _ = now;
        None
    }

    /// Starts to count its file locks, if they are limited.
    fn limit_locks(&self) -> io::Result<Option<LockLimit>> {
        Ok(None)
    }
}
