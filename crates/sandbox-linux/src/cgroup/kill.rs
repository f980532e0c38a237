//! Kills every member of a cgroup one by one, for kernels and hierarchies without `cgroup.kill`.

use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal};

use super::CgroupError;
use super::group::Group;

/// How long members may take to die. Only processes that hang in the kernel take this long.
pub(crate) const KILL_DEADLINE: Duration = Duration::from_secs(5);

/// How long one round waits for the killed processes before it looks for new ones.
const ROUND_TIMEOUT: Duration = Duration::from_millis(50);

/// How many members one round kills, because each takes a descriptor.
const MAX_KILLS_PER_ROUND: usize = 256;

/// Kills the members until there are none.
///
/// A PID read from a file may belong to another process by the time of the signal. So each round
/// first opens a pidfd for every listed PID and then reads the list again: a PID that is still
/// listed belongs to a member, and the pidfd can only refer to that member or one that is already
/// dead.
pub(crate) fn kill_members(group: &Group) -> Result<(), CgroupError> {
    let deadline = Instant::now() + KILL_DEADLINE;
    loop {
        let listed = group.processes()?;
        if listed.is_empty() {
            return Ok(());
        }
        if Instant::now() > deadline {
            return Err(still_alive(group, listed));
        }
        let mut handles = Vec::new();
        for &process in listed.iter().take(MAX_KILLS_PER_ROUND) {
            if let Some(handle) = open_handle(group, process)? {
                handles.push((process, handle));
            }
        }
        let members = group.processes()?;
        for (process, handle) in &handles {
            if members.binary_search(process).is_ok() {
                signal(group, *process, handle)?;
            }
        }
        wait_for_deaths(&handles);
    }
}

/// Removes a group, and kills its members first.
pub(crate) fn dissolve(group: &Group) -> Result<(), CgroupError> {
    group.remove().or_else(|_| {
        kill_members(group)?;
        group.remove()
    })
}

pub(crate) fn still_alive(group: &Group, survivors: Vec<u32>) -> CgroupError {
    CgroupError::StillAlive {
        path: group.directory(0).path().to_owned(),
        survivors,
        waited: KILL_DEADLINE,
    }
}

fn open_handle(group: &Group, process: u32) -> Result<Option<OwnedFd>, CgroupError> {
    // Members outside the caller's PID namespace are listed as 0 and cannot be reached.
    let Some(pid) = i32::try_from(process).ok().and_then(Pid::from_raw) else {
        return Ok(None);
    };
    match rustix::process::pidfd_open(pid, PidfdFlags::empty()) {
        Ok(handle) => Ok(Some(handle)),
        Err(Errno::SRCH) => Ok(None),
        Err(errno) => Err(failed("open a pidfd for", process, group, errno)),
    }
}

fn signal(group: &Group, process: u32, handle: &OwnedFd) -> Result<(), CgroupError> {
    match rustix::process::pidfd_send_signal(handle, Signal::KILL) {
        Ok(()) | Err(Errno::SRCH) => Ok(()),
        Err(errno) => Err(failed("kill", process, group, errno)),
    }
}

fn failed(verb: &str, process: u32, group: &Group, errno: Errno) -> CgroupError {
    CgroupError::file(format!("{verb} process {process} of"), group.directory(0).path(), errno)
}

fn wait_for_deaths(handles: &[(u32, OwnedFd)]) {
    let end = Instant::now() + ROUND_TIMEOUT;
    for (_, handle) in handles {
        // A pidfd is readable once its process is dead, reaped or not.
        let _ = wait_until_ready(handle, PollFlags::IN, end);
    }
    if handles.is_empty() {
        // All listed processes are dying already: yield instead of polling.
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Waits for a descriptor until a deadline; returns whether it became ready.
pub(crate) fn wait_until_ready(
    descriptor: impl AsFd,
    wanted: PollFlags,
    end: Instant,
) -> Result<bool, Errno> {
    loop {
        let left = end.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(left).map_err(|_| Errno::INVAL)?;
        let mut list = [PollFd::new(&descriptor, wanted)];
        match rustix::event::poll(&mut list, Some(&timeout)) {
            Ok(count) => return Ok(count > 0),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
}
