//! What a container is made for, as far as it cannot be changed once it is there.

use std::path::{Path, PathBuf};

use sandbox_core::{BackendError, Isolation, NetworkPolicy, StagePlan, Tree};
use sandbox_linux::guest::place_of_original;

use super::Kernel;
use super::volumes::Place;

/// Files of a tree that the agent makes, beside those that the program may have.
pub(crate) const MADE_INODES: u64 = 1 << 16;

/// Containers of the same purpose can stand in for each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Purpose {
    pub(crate) memory_bytes: u64,
    pub(crate) pids: u32,
    pub(crate) cpu_millis: u32,
    pub(crate) disk_bytes: u64,
    pub(crate) inodes: u64,
    pub(crate) network: NetworkPolicy,
    pub(crate) trees: Vec<Tree>,
    /// Where there will be volumes.
    pub(crate) places: Vec<Place>,
}

impl Purpose {
    /// What a plan needs; or what it needs that such containers do not have.
    pub(crate) fn of(
        plan: &StagePlan,
        isolation: Isolation,
        kernel: Kernel,
    ) -> Result<Self, BackendError> {
        let lacking = [
            (plan.workspace.is_some() && !kernel.sees_new_mounts(), "workspaces"),
            (!plan.volumes.is_empty() && !kernel.sees_new_mounts(), "volumes"),
            (plan.gate.is_some(), "way to fetch packages"),
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
            places: plan.volumes.iter().map(Place::of).collect::<Result<_, _>>()?,
        })
    }

    /// Where its trees are shown: at their places, but for those that the agent makes anew from what is shown.
    pub(crate) fn shown_trees(&self) -> impl Iterator<Item = (&Path, PathBuf)> {
        self.trees.iter().enumerate().map(|(number, tree)| {
            let place =
                if tree.copy_on_write { place_of_original(number) } else { tree.inside.clone() };
            (&*tree.host, place)
        })
    }

    /// Places of trees that the agent makes.
    pub(crate) fn made_trees(&self) -> impl Iterator<Item = &Path> {
        self.trees.iter().filter(|tree| tree.copy_on_write).map(|tree| &*tree.inside)
    }
}
