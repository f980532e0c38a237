//! Waiting for the kernel to run out of memory in a cgroup.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFlags};
use rustix::fs::OFlags;

use super::CgroupError;
use super::file::{ControlFile, Directory};
use super::parse;

/// How long [`OomWatch::triggered`] waits for the kill that v1 has announced. Choosing and killing
/// takes the kernel well under a millisecond.
const ANNOUNCED_KILL: Duration = Duration::from_millis(2);

/// Tells when the kernel kills for want of memory in one cgroup.
///
/// Poll [`OomWatch::fd`] for [`OomWatch::events`], then ask [`OomWatch::triggered`]. The descriptor
/// is only an alarm: v1 sounds it before the kill, also when memory has run out in a cgroup further
/// up, and once more when the cgroup is removed. So the count of kills decides.
#[derive(Debug)]
pub struct OomWatch {
    /// v1 only: the eventfd, and whether it has sounded without a kill being counted yet.
    alarm: Option<OwnedFd>,
    announced: bool,
    /// Where the kills are counted; on v2 also what to poll.
    counter: ControlFile,
    seen: u64,
}

const EXPECTED: &str = "a list with a line oom_kill";

impl OomWatch {
    pub(crate) fn v1(memory: &Directory) -> Result<OomWatch, CgroupError> {
        let counter = memory.open_file("memory.oom_control", OFlags::RDONLY)?;
        let alarm = rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|errno| CgroupError::file("make an eventfd for", memory.path(), errno))?;
        // Read first: a kill between the two is then seen as new rather than lost.
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

    /// What to poll it for: an eventfd becomes readable, a v2 file has "priority" news.
    pub fn events(&self) -> PollFlags {
        if self.alarm.is_some() { PollFlags::IN } else { PollFlags::PRI }
    }

    /// Whether something has been killed since the watch began or since this last answered yes.
    /// Call it when the descriptor is ready, and whenever there is time anyway: a kill that was
    /// announced but slow to come is seen by a later call.
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
        let end = Instant::now() + ANNOUNCED_KILL;
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
                // The cgroup is gone, and with it whatever could still be killed.
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
