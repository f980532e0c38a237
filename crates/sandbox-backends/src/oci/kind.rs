//! Which runtime builds the containers, and what that changes.

use sandbox_core::{Isolation, MissingProtection, Protection};
use sandbox_linux::cgroup::CgroupLimits;
use sandbox_linux::seccomp::DeniedAction;
use serde_json::{Value, json};

use super::bundle::USER;
use crate::guest::{InContainer, Purpose, walls};

/// A runtime that we know how to use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Namespaces of the host's kernel.
    Runc,
    /// A kernel of its own, in user space.
    Gvisor,
}

/// How gVisor's kernel gets hold of system calls, in the order in which it is tried: the first is faster, the second asks
/// less of a host. There is a third, with virtual machines, which hangs on some hosts.
const PLATFORMS: &[&str] = &["systrap", "ptrace"];

/// What gVisor's kernel may need beside what it has taken before the program comes. What it needs for each of the
/// program's processes, some three MiB, counts as the program's.
const GVISOR_MEMORY: u64 = 16 << 20;
/// Threads of the host that it may have for each of the program's (two were seen) and for itself (forty). They keep it from
/// harming the host; the program's own are bounded by its kernel.
const GVISOR_THREADS_EACH: u64 = 4;
const GVISOR_THREADS: u64 = 300;

impl Kind {
    pub(super) const ALL: &[Self] = &[Self::Runc, Self::Gvisor];

    pub(super) fn isolation(self) -> Isolation {
        match self {
            Self::Runc => Isolation::Runc,
            Self::Gvisor => Isolation::Gvisor,
        }
    }

    /// The name of its program.
    pub(super) fn program(self) -> &'static str {
        match self {
            Self::Runc => "runc",
            Self::Gvisor => "runsc",
        }
    }

    /// How a person gets it.
    pub(super) fn how_to_install(self) -> &'static str {
        match self {
            Self::Runc => "'apt-get install runc' on Debian",
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

    /// Ways in which it can run a container, best first; each adds an option to a call.
    pub(super) fn ways(self) -> &'static [&'static str] {
        match self {
            Self::Runc => &[""],
            Self::Gvisor => PLATFORMS,
        }
    }

    /// Whether it is started in our cgroup and stays there with its container. Otherwise the container is moved when it has
    /// started.
    pub(super) fn starts_inside(self) -> bool {
        match self {
            Self::Runc => false,
            // A container is many processes of the host, which come and go.
            Self::Gvisor => true,
        }
    }

    /// Whether it looks for what it shows inside with the rights of the container, so that it finds nothing in a directory
    /// that is closed to others.
    pub(super) fn looks_as_container(self) -> bool {
        match self {
            Self::Runc => false,
            Self::Gvisor => true,
        }
    }

    /// How many of those that the cgroup counts are not the program's, if that can be said.
    pub(super) fn own_processes(self) -> Option<u64> {
        match self {
            // The agent.
            Self::Runc => Some(1),
            Self::Gvisor => None,
        }
    }

    /// What a cgroup has to limit, so that a program in it has as much as it may have.
    pub(super) fn limits(self, purpose: &Purpose) -> CgroupLimits {
        let (memory, pids) = (purpose.memory_bytes, u64::from(purpose.pids));
        let (memory, pids) = match self {
            // The agent is one.
            Self::Runc => (memory, pids + 1),
            Self::Gvisor => (memory + GVISOR_MEMORY, pids * GVISOR_THREADS_EACH + GVISOR_THREADS),
        };
        CgroupLimits {
            memory_bytes: Some(memory),
            pids: Some(pids),
            cpu_millis: Some(purpose.cpu_millis),
        }
    }

    /// Whether the agent is another user than the program.
    pub(super) fn agent_is_root(self) -> bool {
        match self {
            // The kernel protects process 1 from signals, and the agent hides the rest.
            Self::Runc => false,
            // Its kernel lets everybody of the same user kill process 1, and open what it has open.
            Self::Gvisor => true,
        }
    }

    /// Capabilities that the agent needs for that, and that no program gets.
    pub(super) fn rights_of_agent(self) -> &'static [&'static str] {
        if self.agent_is_root() {
            &["CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP", "CAP_KILL"]
        } else {
            &[]
        }
    }

    /// Resource limits that have to stand before the agent starts, in the words of the runtime description.
    pub(super) fn early_rlimits(self) -> Vec<Value> {
        let none = |name: &str| json!({"type": name, "soft": 0, "hard": 0});
        match self {
            Self::Runc => Vec::new(),
            // Its kernel lets no process change this one.
            Self::Gvisor => vec![none("RLIMIT_MSGQUEUE")],
        }
    }

    /// What the agent finds in its containers.
    pub(super) fn inside(self) -> InContainer {
        match self {
            Self::Runc => InContainer::default(),
            Self::Gvisor => InContainer {
                // Its kernel has no listeners.
                denied: DeniedAction::Errno,
                // It counts time in which a process waits for a processor too, and would end one early.
                counts_cpu_time: false,
                counts_processes: false,
                user: Some(USER),
            },
        }
    }

    /// What stands around a program.
    pub(super) fn walls(self) -> Vec<Protection> {
        walls(match self {
            Self::Runc => &[Protection::UserNamespace],
            // Its clocks start with it.
            Self::Gvisor => &[Protection::UserNamespace, Protection::TimeNamespace],
        })
    }

    pub(super) fn missing(self) -> Vec<MissingProtection> {
        let lacks = |protection, reason: &str| MissingProtection {
            protection,
            reason: reason.to_owned(),
            remedy: "use --isolation native".to_owned(),
        };
        match self {
            Self::Runc => vec![
                lacks(Protection::TimeNamespace, "this runc makes no time namespaces"),
                lacks(Protection::Landlock, "the agent sets no rules of Landlock"),
            ],
            Self::Gvisor => {
                vec![lacks(Protection::Landlock, "gVisor's kernel has no Landlock")]
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use sandbox_core::NetworkPolicy;

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

    #[test]
    fn what_the_runtime_needs_is_added_to_the_limits() {
        let purpose = Purpose {
            memory_bytes: 64 << 20,
            pids: 8,
            cpu_millis: 1000,
            disk_bytes: 1 << 20,
            inodes: 100,
            network: NetworkPolicy::None,
            trees: Vec::new(),
        };
        let cgroup = Kind::Gvisor.limits(&purpose);
        assert_eq!(cgroup.memory_bytes, Some(purpose.memory_bytes + GVISOR_MEMORY));
        assert!(cgroup.pids > Kind::Runc.limits(&purpose).pids);
    }
}
