//! Notifications of OOM kills in a cgroup.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFlags};
use rustix::fs::OFlags;

use super::CgroupError;
use super::file::{ControlFile, Directory};
use super::parse;

/// How long [`OomWatch::triggered`] waits for the kill that v1 has announced. The kernel needs well
/// under a millisecond.
const OOM_KILL_TIMEOUT: Duration = Duration::from_millis(2);

/// Reports OOM kills in one cgroup.
///
/// Poll [`OomWatch::fd`] for [`OomWatch::events`], then call [`OomWatch::triggered`]. The
/// descriptor is only an alarm: v1 signals before the kill, also if memory ran out in a parent
/// cgroup, and once more when the cgroup is removed. So the count of kills decides.
#[derive(Debug)]
pub struct OomWatch {
    /// v1 only: the eventfd, and whether it was signalled without a counted kill since.
    alarm: Option<OwnedFd>,
    announced: bool,
    /// The file with the count; on v2 also the one to poll.
    counter: ControlFile,
    seen: u64,
}

const EXPECTED: &str = "a list with a line oom_kill";

impl OomWatch {
    pub(crate) fn v1(memory: &Directory) -> Result<OomWatch, CgroupError> {
        let counter = memory.open_file("memory.oom_control", OFlags::RDONLY)?;
        let alarm = rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|errno| CgroupError::file("make an eventfd for", memory.path(), errno))?;
        // Read first, so that a kill in between counts as new rather than being lost.
        let seen = kills(&counter)?;
        let order = {
            use std::os::fd::AsRawFd;
            format!("{} {}", alarm.as_raw_fd(), counter.as_fd().as_raw_fd())
        };
        memory.write("cgroup.event_control", &order)?;
        Ok(OomWatch { alarm: Some(alarm), announced: false, counter, seen })
    }

    pub(crate) fn v2(memory: &Directory) -> Result<OomWatch, CgroupError> {
        let counter = memory.open_file("memory.events", OFlags::RDONLY)?;
        let seen = kills(&counter)?;
        Ok(OomWatch { alarm: None, announced: false, counter, seen })
    }

    /// The descriptor to poll.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.alarm.as_ref().map_or(self.counter.as_fd(), AsFd::as_fd)
    }

    /// The events to poll for: an eventfd becomes readable, a v2 file has priority data.
    pub fn events(&self) -> PollFlags {
        if self.alarm.is_some() { PollFlags::IN } else { PollFlags::PRI }
    }

    /// Whether a kill was counted since the watch was created or since this last returned true.
    /// Call it when the descriptor is ready, and also otherwise: a kill that was announced but slow
    /// is seen by a later call.
    pub fn triggered(&mut self) -> bool {
        if let Some(alarm) = &self.alarm {
            let mut count = [0_u8; 8];
            if rustix::io::read(alarm, &mut count) == Ok(count.len()) {
                self.announced = true;
            }
            if !self.announced {
                return false;
            }
        }
        let end = Instant::now() + OOM_KILL_TIMEOUT;
        loop {
            match kills(&self.counter) {
                Ok(count) if count > self.seen => {
                    self.seen = count;
                    self.announced = false;
                    return true;
                }
                Ok(_) if self.announced && Instant::now() < end => {
                    std::thread::sleep(Duration::from_micros(100));
                }
                Ok(_) => return false,
                // The cgroup is gone, and with it everything that could be killed.
                Err(_) => {
                    self.announced = false;
                    return false;
                }
            }
        }
    }
}

/// The kills counted in `memory.oom_control` on v1, in `memory.events` on v2.
pub(crate) fn kills(counter: &ControlFile) -> Result<u64, CgroupError> {
    counter.read_short(|text| parse::keyed(text, "oom_kill"), EXPECTED)
}

/// Whether kills are counted in a file of a directory. v1 does so since Linux 4.13.
pub(crate) fn are_counted(memory: &Directory, file: &str) -> bool {
    memory.open_file(file, OFlags::RDONLY).is_ok_and(|counter| kills(&counter).is_ok())
}
