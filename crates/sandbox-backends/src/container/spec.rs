//! The specification of a container: everything that cannot change after its creation.

use std::path::{Path, PathBuf};

use sandbox_core::{BackendError, Isolation, NetworkPolicy, StagePlan, Tree};
use sandbox_linux::agent::copy_source_path;

use super::Kernel;
use super::volumes::MountPoint;

/// Inodes for trees that the agent builds, in addition to the program's limit.
pub(crate) const MADE_INODES: u64 = 1 << 16;

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
}

impl ContainerSpec {
    /// The specification for a plan. Refuses plans that such containers do not support.
    pub(crate) fn of(
        plan: &StagePlan,
        isolation: Isolation,
        kernel: Kernel,
    ) -> Result<Self, BackendError> {
        let lacking = [
            (plan.workspace.is_some() && !kernel.sees_new_mounts(), "workspaces"),
            (!plan.volumes.is_empty() && !kernel.sees_new_mounts(), "volumes"),
            (plan.egress_proxy.is_some(), "way to fetch packages"),
            (plan.network == NetworkPolicy::Allowlist, "network with an allow-list"),
        ];
        if let Some((_, what)) = lacking.iter().find(|(is_needed, _)| *is_needed) {
            return Err(BackendError::Refused(format!(
                "containers of {isolation} have no {what} yet: use --isolation native"
            )));
        }
        let limits = &plan.limits;
        Ok(Self {
            memory_bytes: limits.memory().as_u64(),
            pids: limits.pids(),
            cpu_millis: limits.cpu_millis(),
            disk_bytes: limits.disk().as_u64(),
            inodes: limits.inodes(),
            network: plan.network,
            trees: plan.trees.clone(),
            places: plan.volumes.iter().map(MountPoint::of).collect::<Result<_, _>>()?,
        })
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
