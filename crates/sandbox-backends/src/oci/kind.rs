//! The kinds of OCI runtimes, and what depends on them.

use std::ffi::CStr;

use sandbox_core::{Coverage, Isolation, MissingProtection, Protection};
use sandbox_linux::skeleton::Shown;

use crate::container::{Kernel, lacks, protections};

/// A supported runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Uses namespaces of the host's kernel.
    Runc,
    /// The same as runc, another implementation.
    Crun,
    /// Runs a kernel of its own in user space.
    Gvisor,
}

/// gVisor's platforms, in the order in which they are tried: the first is faster, the second asks
/// less of the host. The third, KVM, hangs on some hosts.
const PLATFORMS: &[&str] = &["systrap", "ptrace"];

impl Kind {
    pub(super) const ALL: &[Self] = &[Self::Runc, Self::Crun, Self::Gvisor];

    /// Interchangeable runtimes, in order of preference.
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

    /// How to install it.
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

    /// Arguments that every call starts with.
    pub(super) fn options(self) -> &'static [&'static str] {
        match self {
            Self::Runc => &[],
            // Cgroup paths are not in systemd's form, whatever the runtime was built to prefer.
            Self::Crun => &["--cgroup-manager=cgroupfs"],
            Self::Gvisor => &[
                // It is started in a cgroup of this process.
                "--ignore-cgroups",
                "--network=none",
                // The root is read-only, and nothing must be written beside it.
                "--overlay2=none",
                // The toolchains do not change while they are mounted.
                "--file-access-mounts=exclusive",
            ],
        }
    }

    /// A host path that must be hidden from it, if it exists.
    pub(super) fn hidden(self) -> &'static [&'static CStr] {
        match self {
            // It refuses hosts with cgroups of both versions, although v1 has all it needs.
            Self::Crun => &[c"/sys/fs/cgroup/unified"],
            Self::Runc | Self::Gvisor => &[],
        }
    }

    /// Whether its containers have network namespaces of the host's kernel.
    pub(super) fn uses_host_network(self) -> bool {
        match self {
            Self::Runc | Self::Crun => true,
            // It has a network stack of its own.
            Self::Gvisor => false,
        }
    }

    /// Platforms on which it can run a container, best first; each adds an option to a call.
    pub(super) fn ways(self) -> &'static [&'static str] {
        match self {
            Self::Runc | Self::Crun => &[""],
            Self::Gvisor => PLATFORMS,
        }
    }

    /// Whether it is started in its container's cgroup and stays there. Otherwise the container is
    /// moved once it has started.
    pub(super) fn starts_inside(self) -> bool {
        match self {
            Self::Runc | Self::Crun => false,
            // A container is many processes of the host, whose number changes.
            Self::Gvisor => true,
        }
    }

    /// Whether it resolves mount sources with the privileges of the container, which cannot enter
    /// private directories.
    pub(super) fn looks_as_container(self) -> bool {
        match self {
            Self::Runc | Self::Crun => false,
            Self::Gvisor => true,
        }
    }

    /// The kernel that serves programs in its containers.
    pub(super) fn kernel(self) -> Kernel {
        match self {
            Self::Runc | Self::Crun => Kernel::Host,
            Self::Gvisor => Kernel::Gvisor,
        }
    }

    /// What its containers enforce by design.
    pub(super) fn protections(self) -> Vec<Protection> {
        protections(&[&[Protection::UserNamespace], self.kernel().own_protections()].concat())
    }

    /// What its containers enforce on this host if they show these directories.
    pub(super) fn coverage(self, shown: &[Shown]) -> Coverage {
        let kernel = self.kernel();
        Coverage::new(&self.protections(), &kernel.lacks_here(shown), kernel.features())
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
    fn every_protection_is_enforced_or_listed_as_missing() {
        for kind in Kind::ALL {
            let mut all = kind.protections();
            all.extend(kind.missing().iter().map(|missing| missing.protection));
            all.sort_unstable();
            assert_eq!(all, Protection::ALL, "{kind:?}");
        }
    }
}
