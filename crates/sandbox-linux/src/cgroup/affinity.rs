//! The CPUs that the members of a cgroup may use, without the `cpuset` controller: to attach a sandbox to one more
//! hierarchy would cost every sandbox an RCU grace period.
//!
//! A thread inherits its mask from the thread that starts it, and inside a sandbox the system-call filter refuses to
//! change it. So binding all members binds everything that they start later.

use rustix::io::Errno;
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::CgroupError;
use super::file::Directory;

/// The members of a fork bomb change while they are bound. What is missed is bound the next time.
const MAX_PASSES: usize = 8;

/// Binds all members, until a pass finds all of them bound. `file` lists the threads.
pub(super) fn bind(directory: &Directory, file: &str, cpus: &CpuSet) -> Result<(), CgroupError> {
    for _ in 0..MAX_PASSES {
        let mut were_bound = true;
        for thread in directory.members(file)? {
            let Some(thread) = i32::try_from(thread).ok().and_then(Pid::from_raw) else { continue };
            let bound = match sched_getaffinity(Some(thread)) {
                Ok(current) if current == *cpus => continue,
                Ok(_) => sched_setaffinity(Some(thread), cpus),
                Err(errno) => Err(errno),
            };
            match bound {
                Ok(()) => were_bound = false,
                Err(Errno::SRCH) => {}
                Err(errno) => {
                    return Err(CgroupError::file("bind the members of", directory.path(), errno));
                }
            }
        }
        if were_bound {
            break;
        }
    }
    Ok(())
}
