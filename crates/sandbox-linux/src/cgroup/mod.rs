//! Control groups: what bounds and counts the memory, processes and CPU time of one sandbox.
//!
//! [`Hierarchy::detect`] finds out, by trying, which of three siblings this host offers: `v2`, `v1`
//! or `none`. Whatever it is, [`Hierarchy::create`] makes one fresh cgroup for one sandbox,
//! ahead of time and used once: a cgroup that has run something keeps charged pages and peaks, so
//! it is never given to a second sandbox.
//!
//! The life of one: `create` → the sandbox gets in by [`Cgroup::entry`] → [`Cgroup::set_limits`] →
//! [`Cgroup::reset_peak`] → the program runs while [`Cgroup::cpu_total`] and [`Cgroup::oom_watch`]
//! are looked at → [`Cgroup::kill`] → [`Cgroup::usage`] and [`Cgroup::oom_kills`] give the verdict →
//! [`Cgroup::remove`]. A supervisor that is shot leaves its cgroups behind; the launcher finds them by
//! [`Hierarchy::own_prefix`] in [`Hierarchy::parents`] and removes them, and if that died too the next
//! start calls [`Hierarchy::sweep`].

mod error;
mod hierarchy;
mod limits;
mod other_hierarchies;
mod usage;

mod affinity;
mod background;
mod none;
mod outer;
mod v1;
mod v2;

mod file;
mod group;
mod kill;
mod locate;
mod name;
mod oom;
mod parse;
mod sweep;

#[cfg(test)]
mod conformance;

use std::ffi::CString;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::time::Duration;

use rustix::fs::{Mode, OFlags, openat};
use rustix::io::Errno;
use rustix::thread::CpuSet;

pub use error::{CgroupError, Leftover};
pub use hierarchy::{Hierarchy, Version};
pub(crate) use kill::wait_until_ready;
pub use limits::{CgroupLimits, Enforces};
pub use oom::OomWatch;
pub use other_hierarchies::{processes_in, remove_everywhere, sweep_everywhere};
pub use outer::OuterLimits;
pub use sweep::SweepOutcome;
pub use usage::Usage;

/// One cgroup, made for one sandbox and used once.
pub trait Cgroup: Send + Sync {
    /// How a process joins. The descriptors are fresh and close-on-exec.
    fn entry(&self) -> Result<Entry, CgroupError>;

    /// Applies the limits that are given and leaves the others as they are, which in a fresh cgroup
    /// means unlimited. A limit that cannot be enforced here is an error before anything is
    /// written, so that no program runs with a missing limit.
    fn set_limits(&self, limits: &CgroupLimits) -> Result<(), CgroupError>;

    /// Resets the memory peak, so that what joined the cgroup in preparation does not count. A v2
    /// kernel before 6.12 cannot do this; there nothing has been in the cgroup yet, so the peak is
    /// clean and this call does nothing.
    fn reset_peak(&self) -> Result<(), CgroupError>;

    /// Usage so far. On v1, init is in the cgroup from early on, so the CPU time of a run is the
    /// difference between two calls.
    fn usage(&self) -> Result<Usage, CgroupError>;

    /// CPU time so far, by one read of an open descriptor: cheap enough to call every few
    /// milliseconds.
    fn cpu_total(&self) -> Result<Duration, CgroupError>;

    /// Number of processes and threads, equally cheap.
    fn tasks(&self) -> Result<u64, CgroupError>;

    /// A file with the bytes in socket buffers, if the memory limit does not count them.
    fn uncounted_socket_memory(&self) -> Result<Option<OwnedFd>, CgroupError> {
        Ok(None)
    }

    /// Closes control files that are not needed while a program runs: there may be thousands of
    /// long-running programs, with a dozen files each. They are reopened when they are needed.
    fn close_files(&self) {}

    /// Number of OOM kills. Any number above zero determines the verdict; the exact number means
    /// nothing, because v2 counts the first victim of a group twice.
    fn oom_kills(&self) -> Result<u64, CgroupError>;

    /// A descriptor that announces OOM kills; `None` if the kernel has none. Create it ahead of
    /// time, as it takes as long as setting all limits.
    fn oom_watch(&self) -> Result<Option<OomWatch>, CgroupError>;

    /// Puts it into the background, where it gets the CPU time that nothing else wants, or back. No
    /// effect where the kernel cannot do that.
    fn set_background(&self, _is_background: bool) -> Result<(), CgroupError> {
        Ok(())
    }

    /// Lets all members, and what they start, run on these CPUs only. A program that starts threads
    /// faster than they are bound may keep some of them elsewhere.
    fn bind(&self, _cpus: &CpuSet) -> Result<(), CgroupError> {
        Ok(())
    }

    /// The PIDs of the members, in the caller's PID namespace.
    fn processes(&self) -> Result<Vec<u32>, CgroupError>;

    /// Kills every member and returns when all are dead. This is final: on v1 it first forbids the
    /// cgroup to fork, without which the loop might not end.
    fn kill(&self) -> Result<(), CgroupError>;

    /// The path that a container runtime in the same cgroups as this process uses for it: relative,
    /// or absolute if it starts with a slash.
    fn path_for_runtimes(&self) -> Option<String>;

    /// Creates a child cgroup.
    fn make_child(&self, name: &str) -> Result<Box<dyn Cgroup>, CgroupError>;

    /// Its directories, for inspection from outside.
    fn removal(&self) -> Result<Vec<Removal>, CgroupError>;

    /// Removes the cgroup, waiting a short while for dying members. It is no error if another
    /// holder of the [`Removal`] was faster.
    fn remove(&self) -> Result<(), CgroupError>;

    /// Removes a cgroup that is no longer needed, and kills its members. Its files are closed
    /// first: the kernel leaks state of a file that is open while its directory is removed.
    fn dissolve(self: Box<Self>) -> Result<(), CgroupError>;
}

/// How a process joins a cgroup.
#[derive(Debug)]
pub enum Entry {
    /// v1: the process itself writes `0` to each of these.
    Write(Vec<OwnedFd>),
    /// v2: the directory to give to `clone3` with `CLONE_INTO_CGROUP`.
    CloneInto(OwnedFd),
    /// There is no cgroup to join.
    Nothing,
}

impl Entry {
    /// Moves another process into it.
    pub fn admit(&self, process: u32) -> Result<(), Errno> {
        let text = process.to_string();
        let write = |door: &OwnedFd| rustix::io::write(door, text.as_bytes()).map(drop);
        match self {
            Self::Write(doors) => doors.iter().try_for_each(write),
            Self::CloneInto(directory) => {
                let flags = OFlags::WRONLY | OFlags::CLOEXEC;
                write(&openat(directory, "cgroup.procs", flags, Mode::empty())?)
            }
            Self::Nothing => Ok(()),
        }
    }

    /// Makes a command start in the cgroup, so that all its children are in it too.
    pub fn admit_at_start(self, command: &mut Command) -> Result<(), Errno> {
        let doors = match self {
            Self::Write(doors) => doors,
            Self::CloneInto(directory) => {
                let flags = OFlags::WRONLY | OFlags::CLOEXEC;
                vec![openat(directory, "cgroup.procs", flags, Mode::empty())?]
            }
            Self::Nothing => return Ok(()),
        };
        let enter = move || {
            for door in &doors {
                rustix::io::write(door, b"0")?;
            }
            Ok(())
        };
        // SAFETY: between fork and exec the closure only calls write(2): it takes no lock and allocates nothing.
        unsafe { command.pre_exec(enter) };
        Ok(())
    }
}

/// One directory to remove, by `unlinkat(parent, name, AT_REMOVEDIR)`.
#[derive(Debug)]
pub struct Removal {
    /// The parent directory, opened with `O_PATH`.
    pub parent: OwnedFd,
    /// The name of the cgroup in it.
    pub name: CString,
}
