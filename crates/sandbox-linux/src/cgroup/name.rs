//! The names of cgroups: `sandbox-run.<pid>.<start time>.<number>`.
//!
//! PID and start time are those of the process that created the cgroup, so that a later start can
//! tell leftovers of a dead process from cgroups in use. The start time distinguishes processes
//! with the same PID. Both are read in the reader's PID namespace: two supervisors that share a
//! cgroup directory must also share a PID namespace.

use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::io::Errno;

use super::CgroupError;

const PREFIX: &str = "sandbox-run";

/// The process that created a cgroup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Creator {
    pub(crate) process: u32,
    /// In clock ticks since boot.
    pub(crate) start_time: u64,
}

impl Creator {
    /// The calling process.
    pub(crate) fn current() -> Result<Creator, CgroupError> {
        // The start time never changes, but a child forked from this process would inherit the
        // cached answer, so it is valid only for the process that asked.
        static REMEMBERED: OnceLock<Creator> = OnceLock::new();
        let process = std::process::id();
        if let Some(creator) = REMEMBERED.get().filter(|creator| creator.process == process) {
            return Ok(*creator);
        }
        let path = "/proc/self/stat";
        let text = std::fs::read_to_string(path).map_err(|error| {
            CgroupError::file("read", path, Errno::from_io_error(&error).unwrap_or(Errno::IO))
        })?;
        let start_time = start_time(&text).ok_or_else(|| CgroupError::Malformed {
            path: path.into(),
            text,
            expected: "the status of a process",
        })?;
        let creator = Creator { process, start_time };
        let _ = REMEMBERED.set(creator);
        Ok(creator)
    }

    /// Whether this very process is alive. If unknown, it counts as alive.
    pub(crate) fn is_alive(self) -> bool {
        match std::fs::read_to_string(format!("/proc/{}/stat", self.process)) {
            Ok(text) => start_time(&text).is_none_or(|started| started == self.start_time),
            // The process may also exit between the open and the read.
            Err(error) => {
                error.kind() != io::ErrorKind::NotFound
                    && error.raw_os_error() != Some(Errno::SRCH.raw_os_error())
            }
        }
    }

    /// Parses a name. Anything that is not exactly of this form belongs to another program.
    pub(crate) fn of_cgroup(name: &str) -> Option<Creator> {
        let mut parts = name.split('.');
        if parts.next()? != PREFIX {
            return None;
        }
        let creator =
            Creator { process: digits(parts.next()?)?, start_time: digits(parts.next()?)? };
        digits::<u64>(parts.next()?)?;
        parts.next().is_none().then_some(creator)
    }
}

/// Prefix of the names of all cgroups of this process.
pub(crate) fn own_prefix() -> Result<String, CgroupError> {
    let Creator { process, start_time } = Creator::current()?;
    Ok(format!("{PREFIX}.{process}.{start_time}."))
}

/// A name that was not used before.
pub(crate) fn fresh() -> Result<String, CgroupError> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    Ok(format!("{}{number}", own_prefix()?))
}

/// Rust's own parser accepts a leading plus sign.
fn digits<T: std::str::FromStr>(text: &str) -> Option<T> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

/// Field 22 of `/proc/<pid>/stat`. The second field is the program's name in parentheses, which may
/// itself contain spaces and parentheses, so counting starts after the last one.
fn start_time(stat: &str) -> Option<u64> {
    let (_, behind_name) = stat.rsplit_once(')')?;
    behind_name.split_ascii_whitespace().nth(22 - 3)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_time_is_found_behind_a_hostile_program_name() {
        let stat = "77 (a) S 1 (b c) R 1 77 77 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 4242 9 9";
        assert_eq!(start_time(stat), Some(4242));
        assert_eq!(start_time("77 (short) S 1"), None);
    }

    #[test]
    fn a_fresh_name_leads_back_to_this_process() {
        let (first, second) = (fresh().unwrap(), fresh().unwrap());
        assert_ne!(first, second);
        let creator = Creator::of_cgroup(&first).unwrap();
        assert_eq!(creator, Creator::current().unwrap());
        assert!(creator.is_alive());
    }

    #[test]
    fn another_start_time_means_another_process() {
        let creator = Creator::current().unwrap();
        assert!(!Creator { start_time: creator.start_time + 1, ..creator }.is_alive());
        assert!(!Creator { process: u32::MAX, ..creator }.is_alive());
    }

    #[test]
    fn names_of_other_forms_are_not_parsed() {
        for name in [
            "sandbox-run",
            "sandbox-run.supervisor",
            "sandbox-run.1.2",
            "sandbox-run.1.2.3.4",
            "sandbox-run.1.2.",
            "sandbox-run.+1.2.3",
            "sandbox-run.1.2.3x",
            "other.1.2.3",
        ] {
            assert_eq!(Creator::of_cgroup(name), None, "{name}");
        }
        assert!(Creator::of_cgroup("sandbox-run.1.2.3").is_some());
    }
}
