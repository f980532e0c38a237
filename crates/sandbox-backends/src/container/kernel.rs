//! The kernel that serves a program in a container, and what depends on it.

use std::collections::BTreeSet;

use sandbox_core::{Capabilities, Feature, MissingProtection, Protection};
use sandbox_linux::cgroup::CgroupLimits;
use sandbox_linux::seccomp::DeniedAction;
use sandbox_linux::skeleton::Shown;
use sandbox_linux::{container_inodes, landlock};

use super::connection::can_copy_descriptors;
use super::{AgentEnvironment, ContainerSpec};
use crate::missing::{missing_inodes, missing_landlock};

/// The program's user inside, unless the host determines it.
pub(crate) const USER: u32 = 1000;

/// Memory that gVisor's kernel needs in addition to what it uses before the program starts. The
/// three MiB or so that it needs for each process count as the program's.
const GVISOR_MEMORY: u64 = 16 << 20;
/// Host threads that it may create for each thread of the program (two were observed) and for
/// itself (forty). This protects the host; its kernel limits the program.
const GVISOR_THREADS_EACH: u64 = 4;
const GVISOR_THREADS: u64 = 300;

/// A kernel that serves programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kernel {
    /// The host's, in namespaces.
    Host,
    /// gVisor's, in user space. On the host it is many processes, whose number changes.
    Gvisor,
}

/// All protections that Landlock provides.
const LANDLOCK: &[Protection] = &[
    Protection::Landlock,
    Protection::LandlockTruncate,
    Protection::LandlockIoctl,
    Protection::LandlockScope,
];

impl Kernel {
    #[cfg(test)]
    pub(crate) const ALL: &[Self] = &[Self::Host, Self::Gvisor];

    /// How many processes in the cgroup are not the program's, if that is known.
    pub(crate) fn own_processes(self) -> Option<u64> {
        match self {
            // The agent.
            Self::Host => Some(1),
            Self::Gvisor => None,
        }
    }

    /// The limits of the cgroup that give a program what its own limits allow.
    pub(crate) fn limits(self, spec: &ContainerSpec) -> CgroupLimits {
        let (memory, pids) = (spec.memory_bytes, u64::from(spec.pids));
        let (memory, pids) = match self {
            Self::Host => (memory, pids + u64::from(spec.agent_processes)),
            Self::Gvisor => (memory + GVISOR_MEMORY, pids * GVISOR_THREADS_EACH + GVISOR_THREADS),
        };
        CgroupLimits {
            memory_bytes: Some(memory),
            pids: Some(pids),
            cpu_millis: Some(spec.cpu_millis),
        }
    }

    /// Whether a running container sees mounts that are made from outside.
    pub(crate) fn sees_new_mounts(self) -> bool {
        self == Self::Host
    }

    /// Sets whether containers get inodes of their own. If they share the host's, the protections
    /// are removed from their capabilities.
    pub(crate) fn covers_inodes(self, capabilities: &mut Capabilities, shares: bool) -> bool {
        if self != Self::Host {
            return false;
        }
        let parts = [Protection::PrivateInodes, Protection::PrivateFileInodes];
        if shares {
            capabilities.enforceable.retain(|part| !parts.contains(part));
        }
        capabilities.enforceable.contains(&Protection::PrivateInodes)
    }

    /// Whether the agent runs as another user than the program.
    pub(crate) fn agent_is_root(self) -> bool {
        match self {
            // The kernel protects process 1 from signals, and the agent hides the rest.
            Self::Host => false,
            // Its kernel lets any process of the same user kill process 1, and open its files.
            Self::Gvisor => true,
        }
    }

    /// What its containers can do besides running one process.
    pub(crate) fn features(self) -> BTreeSet<Feature> {
        // Descriptors cannot be copied out of gVisor's kernel.
        let instances = self == Self::Host && can_copy_descriptors();
        instances.then_some(Feature::Instances).into_iter().collect()
    }

    /// Rlimits that must be zero before the agent starts.
    pub(crate) fn early_rlimits(self) -> &'static [&'static str] {
        match self {
            Self::Host => &[],
            // Its kernel does not allow a process to lower this one.
            Self::Gvisor => &["msgqueue"],
        }
    }

    /// What the agent finds in such containers.
    pub(crate) fn inside(self) -> AgentEnvironment {
        match self {
            Self::Host => AgentEnvironment::default(),
            Self::Gvisor => AgentEnvironment {
                // Its kernel does not support notifications.
                denied: DeniedAction::Errno,
                // It also counts time in which a process waits for a CPU, and would kill it too
                // early.
                counts_cpu_time: false,
                counts_processes: false,
                user: Some(USER),
                landlock: 0,
            },
        }
    }

    /// What it enforces by design, in addition to what every container does.
    pub(crate) fn own_protections(self) -> &'static [Protection] {
        match self {
            // Mounts are covered once the container exists (`inodes`).
            Self::Host => &[
                Protection::PrivateInodes,
                Protection::PrivateFileInodes,
                Protection::IpcLimits,
                Protection::Landlock,
                Protection::LandlockTruncate,
                Protection::LandlockIoctl,
                Protection::LandlockScope,
            ],
            // Its clocks start with it, and its inodes, watches and locks are its own.
            Self::Gvisor => &[
                Protection::TimeNamespace,
                Protection::PrivateInodes,
                Protection::PrivateFileInodes,
                Protection::InotifyLimits,
            ],
        }
    }

    /// What it enforces by design and cannot enforce on this host, in containers that show these
    /// directories.
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

    /// What it does not enforce by design. `builder` is the program that makes no time namespaces.
    pub(crate) fn missing(self, builder: &str) -> Vec<MissingProtection> {
        match self {
            Self::Host => {
                let reason = format!("{builder} makes no time namespaces");
                vec![lacks(Protection::TimeNamespace, &reason)]
            }
            Self::Gvisor => {
                let landlock =
                    LANDLOCK.iter().map(|part| (*part, "gVisor's kernel has no Landlock"));
                let queues =
                    "message queues are gVisor's own memory, which the memory limit bounds";
                let missing = landlock.chain([(Protection::IpcLimits, queues)]);
                missing.map(|(part, reason)| lacks(part, reason)).collect()
            }
        }
    }
}

/// A protection that containers do not provide.
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
        let spec = ContainerSpec {
            memory_bytes: 64 << 20,
            pids: 8,
            cpu_millis: 1000,
            disk_bytes: 1 << 20,
            inodes: 100,
            network: NetworkPolicy::None,
            trees: Vec::new(),
            places: Vec::new(),
            agent_is_root: false,
            agent_processes: 1,
        };
        let cgroup = Kernel::Gvisor.limits(&spec);
        assert_eq!(cgroup.memory_bytes, Some(spec.memory_bytes + GVISOR_MEMORY));
        assert!(cgroup.pids > Kernel::Host.limits(&spec).pids);
    }
}
