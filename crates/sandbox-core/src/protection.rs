use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

macro_rules! protections {
    ($($(#[doc = $doc:literal])+ $variant:ident = $name:literal,)+) => {
        /// One thing that stands between the program and the host: a wall or a limit.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(into = "&'static str", try_from = "String")]
        #[non_exhaustive]
        pub enum Protection {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl Protection {
            /// Every protection, walls first, in the order reports list them.
            pub const ALL: &'static [Protection] = &[$(Protection::$variant),+];

            /// The name used in reports, requests and on the command line.
            pub const fn name(self) -> &'static str {
                match self { $(Protection::$variant => $name),+ }
            }
        }
    };
}

protections! {
    /// Ids inside are not ids outside; what is root inside is nobody outside.
    UserNamespace = "user-namespace",
    /// Mounts of its own.
    MountNamespace = "mount-namespace",
    /// Process ids of its own: no other process can be seen or signalled.
    PidNamespace = "pid-namespace",
    /// Network interfaces and abstract sockets of its own.
    NetNamespace = "net-namespace",
    /// System V IPC and POSIX message queues of its own.
    IpcNamespace = "ipc-namespace",
    /// A host name of its own.
    UtsNamespace = "uts-namespace",
    /// A cgroup tree that begins at its own group.
    CgroupNamespace = "cgroup-namespace",
    /// Boot and monotonic clock offsets of its own.
    TimeNamespace = "time-namespace",
    /// A root made for it, with read-only toolchains and nothing else of the host.
    FreshRoot = "fresh-root",
    /// No directory, and no file in one, has an inode in common with the host or with another sandbox: what one watches or
    /// locks, no other notices.
    PrivateInodes = "private-inodes",
    /// The same for devices, and for single files that are mounted.
    PrivateFileInodes = "private-file-inodes",
    /// Its inotify instances and watches are not counted with those of the host or of another sandbox.
    InotifyLimits = "inotify-limits",
    /// A `/proc` with only its own processes and no system-wide files.
    PrivateProc = "proc-private",
    /// A session and process group of its own, without a controlling terminal.
    Session = "session",
    /// A session keyring of its own.
    Keyring = "keyring",
    /// No capability in any set, and no way to get one back.
    Capabilities = "capabilities",
    /// Set-user-id programs give nothing.
    NoNewPrivs = "no-new-privs",
    /// Only listed system calls.
    Seccomp = "seccomp",
    /// File access ruled once more, by path, in the kernel.
    Landlock = "landlock",
    /// Landlock also rules who may truncate files.
    LandlockTruncate = "landlock-truncate",
    /// Landlock also rules control requests to devices.
    LandlockIoctl = "landlock-ioctl",
    /// Landlock also keeps signals and abstract sockets inside.
    LandlockScope = "landlock-scope",
    /// Core size, file size, locked memory and the like are bounded.
    Rlimits = "rlimits",
    /// No descriptor but the three standard ones.
    ClosedDescriptors = "closed-descriptors",
    /// Memory of all its processes together, page cache and temporary files included, without swap.
    Memory = "memory",
    /// Number of processes and threads.
    Pids = "pids",
    /// Share of the CPUs.
    Cpu = "cpu",
    /// CPU time of all its processes together.
    CpuTime = "cpu-time",
    /// Time on the clock.
    WallTime = "wall-time",
    /// Bytes and files it may write.
    Disk = "disk",
    /// Bytes it may print.
    Output = "output",
    /// Open descriptors of one process.
    OpenFiles = "open-files",
}

impl Protection {
    /// Whether it only stands behind other protections that every sandbox has, or is a part of one that some hosts lack. Where
    /// the host lacks such a one, the report lists it as missing, and nothing is refused.
    pub const fn is_defense_in_depth(self) -> bool {
        matches!(
            self,
            Self::PrivateFileInodes
                | Self::InotifyLimits
                | Self::LandlockTruncate
                | Self::LandlockIoctl
                | Self::LandlockScope
        )
    }
}

/// A name that is no protection's.
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
    fn an_unknown_name_is_told_the_known_ones() {
        let message = "magic".parse::<Protection>().unwrap_err().to_string();
        assert!(message.contains("'magic'") && message.contains("seccomp"), "{message}");
    }
}
