//! The specification of a container: everything that cannot change after its creation.

use std::path::{Path, PathBuf};

use sandbox_core::{BackendError, Isolation, NetworkPolicy, SandboxSpec, Tree};
use sandbox_linux::agent::copy_source_path;

use super::Kernel;
use super::volumes::MountPoint;

/// Inodes for trees that the agent builds, in addition to the program's limit.
pub(crate) const MADE_INODES: u64 = 1 << 16;

/// Maximum number of processes of an instance that are supervised at once, and one connection for
/// its files.
pub(crate) const MAX_CONNECTIONS: u32 = 64;

/// Containers with the same specification are interchangeable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ContainerSpec {
    pub(crate) memory_bytes: u64,
    pub(crate) pids: u32,
    pub(crate) cpu_millis: u32,
    pub(crate) disk_bytes: u64,
    pub(crate) inodes: u64,
    pub(crate) network: NetworkPolicy,
    pub(crate) trees: Vec<Tree>,
    /// Mount points of volumes.
    pub(crate) places: Vec<MountPoint>,
    /// Whether the agent runs as another user than the program.
    pub(crate) agent_is_root: bool,
    /// Maximum number of the agent's own processes.
    pub(crate) agent_processes: u32,
}

impl ContainerSpec {
    /// The specification for a sandbox with one process. Refuses what such containers do not
    /// support.
    pub(crate) fn of(
        sandbox: &SandboxSpec,
        isolation: Isolation,
        kernel: Kernel,
    ) -> Result<Self, BackendError> {
        let lacking = [
            (sandbox.workspace.is_some() && !kernel.sees_new_mounts(), "workspaces"),
            (!sandbox.volumes.is_empty() && !kernel.sees_new_mounts(), "volumes"),
            (sandbox.egress_proxy.is_some(), "way to fetch packages"),
            (sandbox.network == NetworkPolicy::Allowlist, "network with an allow-list"),
        ];
        if let Some((_, what)) = lacking.iter().find(|(is_needed, _)| *is_needed) {
            return Err(BackendError::Refused(format!(
                "containers of {isolation} have no {what} yet: use --isolation native"
            )));
        }
        let limits = &sandbox.limits;
        Ok(Self {
            memory_bytes: limits.memory().as_u64(),
            pids: limits.pids(),
            cpu_millis: limits.cpu_millis(),
            disk_bytes: limits.disk().as_u64(),
            inodes: limits.inodes(),
            network: sandbox.network,
            trees: sandbox.trees.clone(),
            places: sandbox.volumes.iter().map(MountPoint::of).collect::<Result<_, _>>()?,
            agent_is_root: kernel.agent_is_root(),
            agent_processes: 1,
        })
    }

    /// The same for any number of processes. The agent then has processes that the kernel does not
    /// protect from the program's user.
    pub(crate) fn for_instance(self) -> Self {
        Self { agent_is_root: true, agent_processes: 1 + MAX_CONNECTIONS, ..self }
    }

    /// Capabilities that an agent of another user needs; programs get none of them.
    pub(crate) fn rights_of_agent(&self) -> &'static [&'static str] {
        if self.agent_is_root {
            &["CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP", "CAP_KILL"]
        } else {
            &[]
        }
    }

    /// Where its trees are mounted: at their destinations, except those from which the agent builds
    /// a writable copy.
    pub(crate) fn shown_trees(&self) -> impl Iterator<Item = (&Path, PathBuf)> {
        self.trees.iter().enumerate().map(|(number, tree)| {
            let place =
                if tree.copy_on_write { copy_source_path(number) } else { tree.inside.clone() };
            (&*tree.host, place)
        })
    }

    /// Destinations of trees that the agent builds.
    pub(crate) fn made_trees(&self) -> impl Iterator<Item = &Path> {
        self.trees.iter().filter(|tree| tree.copy_on_write).map(|tree| &*tree.inside)
    }
}
