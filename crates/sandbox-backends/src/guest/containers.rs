//! Stages in containers of one kind.

use std::time::Instant;

use sandbox_core::{
    BackendError, CancelToken, Capabilities, Isolation, MissingProtection, Observer, Protection,
    StageOutcome, StagePlan, Tree,
};

use super::watch::{Around, Container, carry_out, without_memory};
use super::{ContainerPool, Kernel, Orders, Purpose, Workshop, inodes, volumes, workspace};

/// What stands around a program in every container, whoever built it. A list, and not all but what is missing: a wall that
/// is new elsewhere is not claimed here before somebody has seen to it.
const WALLS: &[Protection] = &[
    Protection::MountNamespace,
    Protection::PidNamespace,
    Protection::NetNamespace,
    Protection::IpcNamespace,
    Protection::UtsNamespace,
    Protection::CgroupNamespace,
    Protection::FreshRoot,
    Protection::PrivateProc,
    Protection::Session,
    Protection::Keyring,
    Protection::Capabilities,
    Protection::NoNewPrivs,
    Protection::Seccomp,
    Protection::Rlimits,
    Protection::ClosedDescriptors,
    Protection::Memory,
    Protection::Pids,
    Protection::Cpu,
    Protection::CpuTime,
    Protection::WallTime,
    Protection::Disk,
    Protection::Output,
    Protection::OpenFiles,
];

/// The same, with what one kind of containers has besides.
pub(crate) fn walls(own: &[Protection]) -> Vec<Protection> {
    let mut walls: Vec<Protection> = WALLS.iter().chain(own).copied().collect();
    walls.sort_unstable();
    walls
}

/// What one kind of containers can enforce on this host: `by_design` less what the host lacks.
pub(crate) fn capabilities(
    by_design: &[Protection],
    mut missing: Vec<MissingProtection>,
    lacks_here: &[MissingProtection],
) -> Capabilities {
    let is_there = |wall: &&Protection| lacks_here.iter().all(|lack| lack.protection != **wall);
    let enforceable = by_design.iter().filter(is_there).copied().collect();
    missing.extend_from_slice(lacks_here);
    Capabilities { enforceable, missing, together: None }
}

/// Containers of one kind, and what is known of them.
pub(crate) struct Containers<W: Workshop> {
    pub(crate) isolation: Isolation,
    pub(crate) kernel: Kernel,
    pub(crate) pool: ContainerPool<W>,
    pub(crate) capabilities: Capabilities,
    /// What they could enforce on another host. Every plan needs it, or says that it does not.
    pub(crate) lacks_here: Vec<MissingProtection>,
    pub(crate) orders: Orders,
    /// What every one of them shows.
    pub(crate) trees: Vec<Tree>,
}

impl<W: Workshop<Container: Container>> Containers<W> {
    /// Carries out a stage in one of them.
    pub(crate) fn run(
        &self,
        plan: &StagePlan,
        observer: &mut dyn Observer,
        cancel: &CancelToken,
    ) -> Result<StageOutcome, BackendError> {
        let begun = Instant::now();
        for missing in &self.lacks_here {
            let protection = missing.protection;
            if !protection.is_defense_in_depth() && !plan.allow_missing.contains(&protection) {
                return Err(BackendError::CannotEnforce(missing.clone()));
            }
        }
        let mut purpose = Purpose::of(plan, self.isolation, self.kernel)?;
        // Behind the plan's own, which the agent knows by number.
        purpose.trees.extend_from_slice(&self.trees);
        let mut lease = self.pool.claim(&purpose)?;
        let start = lease.start;
        let container = lease.container();
        let channel = container.take_channel()?;
        let container: &dyn Container = container;
        let shared = container.shared_inodes();
        inodes::check(shared, plan)?;
        let has_cpu_limit = plan.limits.cpu_time().is_some();
        let enforced = self.capabilities.enforceable.iter().copied();
        let enforced = enforced.filter(|wall| *wall != Protection::CpuTime || has_cpu_limit);
        let enforced = enforced.filter(|wall| inodes::leaves(shared, *wall));
        let around = Around {
            container,
            enforced: enforced.collect(),
            start,
            name_of: &|number, arguments| self.orders.name_of(number, arguments),
            begun,
        };
        let made = workspace::make(plan, container)?;
        if made.as_ref().is_some_and(|made| !made.is_filled) {
            return without_memory(around);
        }
        let workspace = volumes::attach(plan, made, container)?;
        let exec = self.orders.write(plan)?;
        let outcome = carry_out(around, channel, plan, &exec, observer, cancel)?;
        match workspace {
            Some(workspace) => workspace::conclude(&workspace, plan, outcome),
            None => Ok(outcome),
        }
    }
}
