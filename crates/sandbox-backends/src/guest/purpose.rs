//! What a container is made for, as far as it cannot be changed once it is there.

use sandbox_core::{NetworkPolicy, StagePlan, Tree};
use sandbox_linux::cgroup::CgroupLimits;

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
}

impl Purpose {
    pub(crate) fn of(plan: &StagePlan) -> Self {
        let limits = &plan.limits;
        Self {
            memory_bytes: limits.memory().as_u64(),
            pids: limits.pids(),
            cpu_millis: limits.cpu_millis(),
            disk_bytes: limits.disk().as_u64(),
            inodes: limits.inodes(),
            network: plan.network,
            trees: plan.trees.clone(),
        }
    }

    /// What its cgroup allows, with so many processes that are not the program's.
    pub(crate) fn cgroup_limits(&self, own_processes: u64) -> CgroupLimits {
        CgroupLimits {
            memory_bytes: Some(self.memory_bytes),
            pids: Some(u64::from(self.pids) + own_processes),
            cpu_millis: Some(self.cpu_millis),
        }
    }
}
