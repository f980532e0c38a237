//! Which runtime builds the containers, and what that changes.

use std::ffi::CStr;

use sandbox_core::{Coverage, Isolation, MissingProtection, Protection};
use sandbox_linux::skeleton::Shown;

use crate::guest::{Kernel, lacks, walls};

/// A runtime that we know how to use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Namespaces of the host's kernel.
    Runc,
    /// The same, built by another program.
    Crun,
    /// A kernel of its own, in user space.
    Gvisor,
}

/// How gVisor's kernel gets hold of system calls, in the order in which it is tried: the first is faster, the second asks
/// less of a host. There is a third, with virtual machines, which hangs on some hosts.
const PLATFORMS: &[&str] = &["systrap", "ptrace"];

impl Kind {
    pub(super) const ALL: &[Self] = &[Self::Runc, Self::Crun, Self::Gvisor];

    /// Those that do the same as the first of them, in the order in which they are looked for.
    pub(super) fn of(isolation: Isolation) -> &'static [Self] {
        match isolation {
            Isolation::Gvisor => &[Self::Gvisor],
            _ => &[Self::Runc, Self::Crun],
        }
    }

    /// The name of its program.
    pub(super) fn program(self) -> &'static str {
        match self {
            Self::Runc => "runc",
            Self::Crun => "crun",
            Self::Gvisor => "runsc",
        }
    }

    /// How a person gets it.
    pub(super) fn how_to_install(self) -> &'static str {
        match self {
            Self::Runc => "'apt-get install runc' on Debian",
            Self::Crun => "'apt-get install crun' on Debian",
            Self::Gvisor => {
                "'apt-get install runsc' on Debian, from backports before Debian 13, or \
                 https://gvisor.dev/docs/user_guide/install"
            }
        }
    }

    /// What every call of it begins with.
    pub(super) fn options(self) -> &'static [&'static str] {
        match self {
            Self::Runc => &[],
            // Whatever its builder preferred: the paths of cgroups that it gets are not systemd's.
            Self::Crun => &["--cgroup-manager=cgroupfs"],
            Self::Gvisor => &[
                // It is started in a cgroup of ours.
                "--ignore-cgroups",
                "--network=none",
                // The root is read-only, and nothing is to be written beside it.
                "--overlay2=none",
                // Nobody changes the toolchains while they are shown.
                "--file-access-mounts=exclusive",
            ],
        }
    }

    /// What it must not see of the host, if that is there.
    pub(super) fn hidden(self) -> &'static [&'static CStr] {
        match self {
            // It does nothing where it finds cgroups of both versions, and the first has all that it needs.
            Self::Crun => &[c"/sys/fs/cgroup/unified"],
            Self::Runc | Self::Gvisor => &[],
        }
    }

    /// Whether its containers have namespaces of the host's network.
    pub(super) fn uses_host_network(self) -> bool {
        match self {
            Self::Runc | Self::Crun => true,
            // It has a network of its own making.
            Self::Gvisor => false,
        }
    }

    /// Ways in which it can run a container, best first; each adds an option to a call.
    pub(super) fn ways(self) -> &'static [&'static str] {
        match self {
            Self::Runc | Self::Crun => &[""],
            Self::Gvisor => PLATFORMS,
        }
    }

    /// Whether it is started in our cgroup and stays there with its container. Otherwise the container is moved when it has
    /// started.
    pub(super) fn starts_inside(self) -> bool {
        match self {
            Self::Runc | Self::Crun => false,
            // A container is many processes of the host, which come and go.
            Self::Gvisor => true,
        }
    }

    /// Whether it looks for what it shows inside with the rights of the container, so that it finds nothing in a directory
    /// that is closed to others.
    pub(super) fn looks_as_container(self) -> bool {
        match self {
            Self::Runc | Self::Crun => false,
            Self::Gvisor => true,
        }
    }

    /// What a program in its containers talks to.
    pub(super) fn kernel(self) -> Kernel {
        match self {
            Self::Runc | Self::Crun => Kernel::Host,
            Self::Gvisor => Kernel::Gvisor,
        }
    }

    /// What its containers enforce by design.
    pub(super) fn walls(self) -> Vec<Protection> {
        walls(&[&[Protection::UserNamespace], self.kernel().own_walls()].concat())
    }

    /// What its containers enforce on this host, of which they show these directories.
    pub(super) fn coverage(self, shown: &[Shown]) -> Coverage {
        Coverage::new(&self.walls(), &self.kernel().lacks_here(shown))
    }

    /// What its containers do not enforce by design.
    pub(super) fn missing(self) -> Vec<MissingProtection> {
        let mut missing = self.kernel().missing("the runtime");
        if self.kernel() == Kernel::Host {
            let owner =
                "the runtime's user namespaces belong to root, for whom the kernel counts them too";
            missing.push(lacks(Protection::InotifyLimits, owner));
        }
        missing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_protection_is_there_or_said_to_be_missing() {
        for kind in Kind::ALL {
            let mut all = kind.walls();
            all.extend(kind.missing().iter().map(|missing| missing.protection));
            all.sort_unstable();
            assert_eq!(all, Protection::ALL, "{kind:?}");
        }
    }
}
