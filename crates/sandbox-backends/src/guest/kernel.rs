//! Whose kernel a program in a container talks to, and what that changes.

use sandbox_core::{Capabilities, MissingProtection, Protection};
use sandbox_linux::cgroup::CgroupLimits;
use sandbox_linux::seccomp::DeniedAction;
use sandbox_linux::skeleton::Shown;
use sandbox_linux::{container_inodes, landlock};

use super::{InContainer, Purpose};
use crate::{missing_inodes, missing_landlock};

/// The program's user inside, where that is not the host's business.
pub(crate) const USER: u32 = 1000;

/// What gVisor's kernel may need beside what it has taken before the program comes. What it needs for each of the
/// program's processes, some three MiB, counts as the program's.
const GVISOR_MEMORY: u64 = 16 << 20;
/// Threads of the host that it may have for each of the program's (two were seen) and for itself (forty). They keep it from
/// harming the host; the program's own are bounded by its kernel.
const GVISOR_THREADS_EACH: u64 = 4;
const GVISOR_THREADS: u64 = 300;

/// A kernel in front of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kernel {
    /// The host's, with namespaces of the container's own.
    Host,
    /// gVisor's, in user space. On the host it is many processes, which come and go.
    Gvisor,
}

/// All that Landlock is taken for.
const LANDLOCK: &[Protection] = &[
    Protection::Landlock,
    Protection::LandlockTruncate,
    Protection::LandlockIoctl,
    Protection::LandlockScope,
];

impl Kernel {
    #[cfg(test)]
    pub(crate) const ALL: &[Self] = &[Self::Host, Self::Gvisor];

    /// How many of those that the cgroup counts are not the program's, if that can be said.
    pub(crate) fn own_processes(self) -> Option<u64> {
        match self {
            // The agent.
            Self::Host => Some(1),
            Self::Gvisor => None,
        }
    }

    /// What a cgroup has to limit, so that a program in it has as much as it may have.
    pub(crate) fn limits(self, purpose: &Purpose) -> CgroupLimits {
        let (memory, pids) = (purpose.memory_bytes, u64::from(purpose.pids));
        let (memory, pids) = match self {
            // The agent is one.
            Self::Host => (memory, pids + 1),
            Self::Gvisor => (memory + GVISOR_MEMORY, pids * GVISOR_THREADS_EACH + GVISOR_THREADS),
        };
        CgroupLimits {
            memory_bytes: Some(memory),
            pids: Some(pids),
            cpu_millis: Some(purpose.cpu_millis),
        }
    }

    /// Whether what is mounted from outside, into a container that runs, is seen inside.
    pub(crate) fn sees_new_mounts(self) -> bool {
        self == Self::Host
    }

    /// Whether containers get inodes of their own over what they show, unless they are to share the host's. What is not enforced
    /// then is taken from their capabilities.
    pub(crate) fn covers_inodes(self, capabilities: &mut Capabilities, shares: bool) -> bool {
        if self != Self::Host {
            return false;
        }
        let parts = [Protection::PrivateInodes, Protection::PrivateFileInodes];
        if shares {
            capabilities.enforceable.retain(|wall| !parts.contains(wall));
        }
        capabilities.enforceable.contains(&Protection::PrivateInodes)
    }

    /// Whether the agent is another user than the program.
    pub(crate) fn agent_is_root(self) -> bool {
        match self {
            // The kernel protects process 1 from signals, and the agent hides the rest.
            Self::Host => false,
            // Its kernel lets everybody of the same user kill process 1, and open what it has open.
            Self::Gvisor => true,
        }
    }

    /// Capabilities that the agent needs for that, and that no program gets.
    pub(crate) fn rights_of_agent(self) -> &'static [&'static str] {
        if self.agent_is_root() {
            &["CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP", "CAP_KILL"]
        } else {
            &[]
        }
    }

    /// Resource limits that have to be zero before the agent starts.
    pub(crate) fn early_rlimits(self) -> &'static [&'static str] {
        match self {
            Self::Host => &[],
            // Its kernel lets no process change this one.
            Self::Gvisor => &["msgqueue"],
        }
    }

    /// What the agent finds in such containers.
    pub(crate) fn inside(self) -> InContainer {
        match self {
            Self::Host => InContainer::default(),
            Self::Gvisor => InContainer {
                // Its kernel has no listeners.
                denied: DeniedAction::Errno,
                // It counts time in which a process waits for a processor too, and would end one early.
                counts_cpu_time: false,
                counts_processes: false,
                user: Some(USER),
                landlock: 0,
            },
        }
    }

    /// What it enforces by design, beside what every container has.
    pub(crate) fn own_walls(self) -> &'static [Protection] {
        match self {
            // What is shown is covered when the container is there (`inodes`).
            Self::Host => &[
                Protection::PrivateInodes,
                Protection::PrivateFileInodes,
                Protection::Landlock,
                Protection::LandlockTruncate,
                Protection::LandlockIoctl,
                Protection::LandlockScope,
            ],
            // Its clocks start with it, and so do its inodes, watches and locks.
            Self::Gvisor => &[
                Protection::TimeNamespace,
                Protection::PrivateInodes,
                Protection::PrivateFileInodes,
                Protection::InotifyLimits,
            ],
        }
    }

    /// What it enforces by design and cannot enforce on this host, in containers that show these directories of it.
    pub(crate) fn lacks_here(self, shown: &[Shown]) -> Vec<MissingProtection> {
        match self {
            Self::Host => {
                let mut lacks = missing_landlock(landlock::version());
                lacks.extend(missing_inodes(shown, container_inodes::can_make_devices()));
                lacks
            }
            Self::Gvisor => Vec::new(),
        }
    }

    /// What it does not enforce by design. `builder` is who could have made a time namespace.
    pub(crate) fn missing(self, builder: &str) -> Vec<MissingProtection> {
        match self {
            Self::Host => {
                let reason = format!("{builder} makes no time namespaces");
                vec![lacks(Protection::TimeNamespace, &reason)]
            }
            Self::Gvisor => {
                let lacks = |part: &Protection| lacks(*part, "gVisor's kernel has no Landlock");
                LANDLOCK.iter().map(lacks).collect()
            }
        }
    }
}

/// A wall that containers do not have.
pub(crate) fn lacks(protection: Protection, reason: &str) -> MissingProtection {
    let remedy = "use --isolation native".to_owned();
    MissingProtection { protection, reason: reason.to_owned(), remedy }
}

#[cfg(test)]
mod tests {
    use sandbox_core::NetworkPolicy;

    use super::*;

    #[test]
    fn what_the_kernel_needs_is_added_to_the_limits() {
        let purpose = Purpose {
            memory_bytes: 64 << 20,
            pids: 8,
            cpu_millis: 1000,
            disk_bytes: 1 << 20,
            inodes: 100,
            network: NetworkPolicy::None,
            trees: Vec::new(),
            places: Vec::new(),
        };
        let cgroup = Kernel::Gvisor.limits(&purpose);
        assert_eq!(cgroup.memory_bytes, Some(purpose.memory_bytes + GVISOR_MEMORY));
        assert!(cgroup.pids > Kernel::Host.limits(&purpose).pids);
    }
}
