use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

macro_rules! protections {
    ($($(#[doc = $doc:literal])+ $variant:ident = $name:literal,)+) => {
        /// A mechanism that isolates the program from the host, or a limit on its resource usage.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(into = "&'static str", try_from = "String")]
        #[non_exhaustive]
        pub enum Protection {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl Protection {
            /// Every protection, isolation before limits, in the order of reports.
            pub const ALL: &'static [Protection] = &[$(Protection::$variant),+];

            /// The name used in reports, requests and on the command line.
            pub const fn name(self) -> &'static str {
                match self { $(Protection::$variant => $name),+ }
            }
        }
    };
}

protections! {
    /// User and group IDs of its own: root inside is not root outside.
    UserNamespace = "user-namespace",
    /// A mount table of its own.
    MountNamespace = "mount-namespace",
    /// Process IDs of its own: other processes cannot be seen or signalled.
    PidNamespace = "pid-namespace",
    /// Network interfaces and abstract sockets of its own.
    NetNamespace = "net-namespace",
    /// System V IPC and POSIX message queues of its own.
    IpcNamespace = "ipc-namespace",
    /// A host name of its own.
    UtsNamespace = "uts-namespace",
    /// A cgroup tree of its own.
    CgroupNamespace = "cgroup-namespace",
    /// Boot and monotonic clock offsets of its own.
    TimeNamespace = "time-namespace",
    /// A root file system of its own, with read-only toolchains and no other files of the host.
    FreshRoot = "fresh-root",
    /// No directory, and no file in one, shares an inode with the host or another sandbox, so that
    /// file locks and watches are not visible across sandboxes.
    PrivateInodes = "private-inodes",
    /// The same for devices and for single files that are mounted.
    PrivateFileInodes = "private-file-inodes",
    /// inotify instances and watches are counted separately from those of the host and of other
    /// sandboxes.
    InotifyLimits = "inotify-limits",
    /// Few System V message queues and semaphore sets.
    IpcLimits = "ipc-limits",
    /// A `/proc` with its own processes only and without system-wide files.
    PrivateProc = "proc-private",
    /// A session and process group of its own, without a controlling terminal.
    Session = "session",
    /// A session keyring of its own.
    Keyring = "keyring",
    /// No capability in any set, and no way to regain one.
    Capabilities = "capabilities",
    /// Set-user-ID programs grant no privileges.
    NoNewPrivs = "no-new-privs",
    /// Only allowed system calls.
    Seccomp = "seccomp",
    /// File access is also restricted by path, with Landlock.
    Landlock = "landlock",
    /// Landlock also restricts truncation of files.
    LandlockTruncate = "landlock-truncate",
    /// Landlock also restricts ioctl requests to devices.
    LandlockIoctl = "landlock-ioctl",
    /// Landlock also blocks signals and abstract sockets to processes outside.
    LandlockScope = "landlock-scope",
    /// Limits on core dumps, file size, locked memory and the like.
    Rlimits = "rlimits",
    /// No open descriptors but the three standard ones.
    ClosedDescriptors = "closed-descriptors",
    /// Memory of all processes, page cache and temporary files included, without swap.
    Memory = "memory",
    /// Number of processes and threads.
    Pids = "pids",
    /// CPU limit.
    Cpu = "cpu",
    /// CPU time of all processes.
    CpuTime = "cpu-time",
    /// Wall-clock time.
    WallTime = "wall-time",
    /// Bytes and files that it may write.
    Disk = "disk",
    /// Bytes of output.
    Output = "output",
    /// Open descriptors of one process.
    OpenFiles = "open-files",
}

impl Protection {
    /// Whether the protection only backs up others that every sandbox has, or is a part of one that
    /// some hosts lack. If the host lacks such a protection, the report lists it as missing and
    /// nothing is refused.
    pub const fn is_defense_in_depth(self) -> bool {
        matches!(
            self,
            Self::PrivateFileInodes
                | Self::InotifyLimits
                | Self::IpcLimits
                | Self::LandlockTruncate
                | Self::LandlockIoctl
                | Self::LandlockScope
        )
    }
}

/// A text that is not the name of a protection.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{name}' is not a protection; the names are: {}", names())]
pub struct UnknownProtection {
    name: String,
}

fn names() -> String {
    Protection::ALL.iter().map(|protection| protection.name()).collect::<Vec<_>>().join(", ")
}

impl fmt::Display for Protection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Protection {
    type Err = UnknownProtection;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .iter()
            .copied()
            .find(|protection| protection.name() == name)
            .ok_or_else(|| UnknownProtection { name: name.to_owned() })
    }
}

impl From<Protection> for &'static str {
    fn from(protection: Protection) -> Self {
        protection.name()
    }
}

impl TryFrom<String> for Protection {
    type Error = UnknownProtection;

    fn try_from(name: String) -> Result<Self, Self::Error> {
        name.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_reads_back() {
        for protection in Protection::ALL {
            assert_eq!(protection.name().parse(), Ok(*protection));
        }
    }

    #[test]
    fn the_error_for_an_unknown_name_lists_the_known_ones() {
        let message = "magic".parse::<Protection>().unwrap_err().to_string();
        assert!(message.contains("'magic'") && message.contains("seccomp"), "{message}");
    }
}
