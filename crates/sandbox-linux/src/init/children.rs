//! The children of the shim of one program of an instance, and with them all that descends from the
//! program.
//!
//! The shim is a subreaper: a process whose parent ends becomes its child, so nothing leaves its
//! tree. Killing the children again and again therefore reaches every descendant.

use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, kill_process, set_child_subreaper};

use crate::clock;
use crate::step::{AtStep as _, StepError};
use crate::syscall;

/// Processes that fork faster than they are killed are left to the supervisor after this time. It
/// then kills the whole instance.
const END_TIMEOUT: Duration = Duration::from_secs(2);

/// The list of this process's children.
pub(super) struct Children(File);

impl Children {
    /// Makes this process the subreaper of its descendants, before it has any.
    pub(super) fn adopt() -> Result<Self, StepError> {
        set_child_subreaper(Some(rustix::process::getpid())).at("adopt orphaned processes")?;
        // The kernel lists children for a thread. This process has one.
        File::open("/proc/thread-self/children").map(Self).at("list child processes")
    }

    /// Kills those that are there now.
    pub(super) fn kill(&self) -> Result<(), StepError> {
        for child in self.list()? {
            // It is not reaped yet, so its PID cannot be another process's.
            let _ = kill_process(child, Signal::KILL);
        }
        Ok(())
    }

    /// Kills and reaps until no descendant is left.
    pub(super) fn end(&self, signals: &libc::sigset_t) -> Result<(), StepError> {
        let deadline = clock::monotonic_nanos() + nanos(END_TIMEOUT);
        loop {
            self.kill()?;
            // What a child leaves behind is in the list by the time it can be reaped.
            loop {
                match rustix::process::wait(WaitOptions::NOHANG) {
                    Ok(Some(_)) => {}
                    Ok(None) => break,
                    Err(Errno::CHILD) => return Ok(()),
                    Err(error) => return Err(error).at("wait for child processes"),
                }
            }
            let left = deadline.saturating_sub(clock::monotonic_nanos());
            if left == 0 {
                return Err(Errno::TIMEDOUT).at("end what the program left behind");
            }
            // A child that ended since then has left this signal.
            syscall::next_signal_within(signals, Duration::from_nanos(left));
        }
    }

    fn list(&self) -> Result<Vec<Pid>, StepError> {
        let step = "list child processes";
        let (mut list, mut file) = (String::new(), &self.0);
        file.rewind().at(step)?;
        file.read_to_string(&mut list).at(step)?;
        Ok(list.split_ascii_whitespace().filter_map(parse).collect())
    }
}

fn parse(number: &str) -> Option<Pid> {
    number.parse().ok().and_then(Pid::from_raw)
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
