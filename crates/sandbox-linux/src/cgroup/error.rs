//! Cgroup errors. Each message names the file and the operation.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use rustix::io::Errno;

/// Why an operation on a cgroup failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CgroupError {
    /// The kernel refused to do something with one file or directory.
    #[error("cannot {verb} {}", path.display())]
    File {
        /// What was tried, for instance `write 1024 to`.
        verb: String,
        /// What it was tried on.
        path: PathBuf,
        /// The kernel's answer.
        #[source]
        source: Errno,
    },

    /// A file does not hold what the kernel documents for it.
    #[error("{} holds {text:?}, which is not {expected}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What was in it.
        text: String,
        /// What should have been.
        expected: &'static str,
    },

    /// The cgroups of this host do not support the request.
    #[error("the cgroups of this host cannot enforce {what}")]
    NotEnforced {
        /// What was requested.
        what: String,
    },

    /// A limit that the kernel would refuse.
    #[error("a limit of {value} for {limit} is too low: the least the kernel accepts is {least}")]
    LimitTooLow {
        /// Which limit, with its unit.
        limit: &'static str,
        /// The requested value.
        value: u64,
        /// The minimum.
        least: u64,
    },

    /// Members survived SIGKILL. They hang in the kernel, for instance on a dead network mount.
    #[error("{} still holds living processes {survivors:?}, {waited:?} after they were killed", path.display())]
    StillAlive {
        /// The cgroup.
        path: PathBuf,
        /// The process ids.
        survivors: Vec<u32>,
        /// How long they were waited for.
        waited: Duration,
    },

    /// Some directories of a cgroup could not be removed.
    #[error("could not remove {}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join(" and "))]
    LeftBehind(Vec<Leftover>),
}

impl CgroupError {
    pub(crate) fn file(
        verb: impl Into<String>,
        path: impl Into<PathBuf>,
        source: Errno,
    ) -> CgroupError {
        CgroupError::File { verb: verb.into(), path: path.into(), source }
    }

    /// The kernel's error number, if the kernel refused something.
    pub fn errno(&self) -> Option<Errno> {
        match self {
            CgroupError::File { source, .. } => Some(*source),
            _ => None,
        }
    }

    /// The message and all its causes in one line.
    pub(crate) fn in_full(&self) -> String {
        match self.errno() {
            Some(errno) => format!("{self}: {errno}"),
            None => self.to_string(),
        }
    }
}

/// A directory that could not be removed.
#[derive(Debug)]
pub struct Leftover {
    /// The directory.
    pub path: PathBuf,
    /// Why the kernel would not remove it.
    pub errno: Errno,
    /// The processes in it.
    pub processes: Vec<u32>,
}

impl fmt::Display for Leftover {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} ({}", self.path.display(), self.errno)?;
        if !self.processes.is_empty() {
            write!(formatter, "; processes {:?} are in it", self.processes)?;
        }
        formatter.write_str(")")
    }
}
