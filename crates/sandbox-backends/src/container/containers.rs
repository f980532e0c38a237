//! Runs stages in containers of one kind.

use std::time::Instant;

use sandbox_core::{
    Backend, BackendError, CancelToken, Capabilities, Instance, Isolation, MissingProtection,
    Observer, PoolStats, Protection, SandboxSpec, StageOutcome, StagePlan, Tree,
};

use super::instance::ContainerInstance;
use super::supervise::{Container, StageContext, run_stage, without_memory};
use super::{
    ContainerFactory, ContainerPool, ContainerSpec, ExecEncoder, Kernel, inodes, volumes, workspace,
};

/// Protections of every container. An explicit list: a protection that is added elsewhere is not
/// claimed here before it is implemented.
const COMMON_PROTECTIONS: &[Protection] = &[
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

/// The protections of every container, and those of one kind of containers.
pub(crate) fn protections(own: &[Protection]) -> Vec<Protection> {
    let mut protections: Vec<Protection> = COMMON_PROTECTIONS.iter().chain(own).copied().collect();
    protections.sort_unstable();
    protections
}

/// What one kind of containers can enforce on this host: `by_design` less what the host lacks.
pub(crate) fn capabilities(
    kernel: Kernel,
    by_design: &[Protection],
    mut missing: Vec<MissingProtection>,
    lacks_here: &[MissingProtection],
) -> Capabilities {
    let is_there =
        |protection: &&Protection| lacks_here.iter().all(|lack| lack.protection != **protection);
    let enforceable = by_design.iter().filter(is_there).copied().collect();
    missing.extend_from_slice(lacks_here);
    Capabilities { enforceable, missing, features: kernel.features(), aggregate_limits: None }
}

/// Containers of one kind.
pub(crate) struct Containers<F: ContainerFactory> {
    pub(crate) isolation: Isolation,
    pub(crate) kernel: Kernel,
    pub(crate) pool: ContainerPool<F>,
    pub(crate) capabilities: Capabilities,
    /// Protections that they enforce on other hosts. A plan must allow these to be missing.
    pub(crate) lacks_here: Vec<MissingProtection>,
    pub(crate) exec_encoder: ExecEncoder,
    /// What all of them show.
    pub(crate) trees: Vec<Tree>,
}

impl<F: ContainerFactory<Container: Container>> Containers<F> {
    /// The specification of a container for a sandbox. Refuses what such containers do not support
    /// or enforce.
    pub(super) fn spec_of(&self, sandbox: &SandboxSpec) -> Result<ContainerSpec, BackendError> {
        for missing in &self.lacks_here {
            let protection = missing.protection;
            if !protection.is_defense_in_depth() && !sandbox.allow_missing.contains(&protection) {
                return Err(BackendError::CannotEnforce(missing.clone()));
            }
        }
        let mut spec = ContainerSpec::of(sandbox, self.isolation, self.kernel)?;
        // After the sandbox's own trees, which the agent refers to by number.
        spec.trees.extend_from_slice(&self.trees);
        Ok(spec)
    }
}

impl<F: ContainerFactory<Container: Container + Sync>> Backend for Containers<F> {
    fn isolation(&self) -> Isolation {
        self.isolation
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn lacks_here(&self) -> &[MissingProtection] {
        &self.lacks_here
    }

    fn pool(&self) -> Option<PoolStats> {
        Some(self.pool.stats())
    }

    fn create(
        &self,
        sandbox: SandboxSpec,
        cancel: &CancelToken,
    ) -> Result<Box<dyn Instance + '_>, BackendError> {
        Ok(Box::new(ContainerInstance::create(self, sandbox, cancel)?))
    }

    fn run(
        &self,
        plan: &StagePlan,
        observer: &mut dyn Observer,
        cancel: &CancelToken,
    ) -> Result<StageOutcome, BackendError> {
        let begun = Instant::now();
        let spec = self.spec_of(&plan.sandbox)?;
        let mut lease = self.pool.claim(&spec)?;
        let start = lease.start;
        let container = lease.container();
        let channel = container.take_channel()?;
        let container: &dyn Container = container;
        let shared = container.shared_inodes();
        inodes::check(shared, &plan.sandbox)?;
        let has_cpu_limit = plan.sandbox.limits.cpu_time().is_some();
        let enforced = self.capabilities.enforceable.iter().copied();
        let enforced =
            enforced.filter(|protection| *protection != Protection::CpuTime || has_cpu_limit);
        let enforced = enforced.filter(|protection| inodes::leaves(shared, *protection));
        let context = StageContext {
            container,
            enforced: enforced.collect(),
            start,
            exec_encoder: &self.exec_encoder,
            begun,
        };
        let made = workspace::make(plan, container)?;
        if made.as_ref().is_some_and(|made| !made.is_filled) {
            return without_memory(context);
        }
        let workspace = volumes::attach(&plan.sandbox, made, container)?;
        let exec = self.exec_encoder.write(plan)?;
        let outcome = run_stage(context, channel, plan, &exec, observer, cancel)?;
        match workspace {
            Some(workspace) => crate::workspace::conclude(workspace.directory(), plan, outcome),
            None => Ok(outcome),
        }
    }
}
