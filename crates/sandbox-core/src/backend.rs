use std::collections::BTreeSet;

use serde::Serialize;

use crate::{
    BackendError, CancelToken, Feature, Instance, Isolation, MissingProtection, Observer,
    Protection, SandboxSpec, StageOutcome, StagePlan,
};

/// What a backend can do on this host, found by probing.
#[derive(Clone, Debug, Default)]
pub struct Capabilities {
    /// Protections that it can enforce.
    pub enforceable: Vec<Protection>,
    /// Protections that it cannot enforce.
    pub missing: Vec<MissingProtection>,
    /// What its sandboxes can do besides running one stage.
    pub features: BTreeSet<Feature>,
    /// Limits on all of its sandboxes together; `None` if there are none.
    pub aggregate_limits: Option<AggregateLimits>,
}

/// Limits on all sandboxes of one backend together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct AggregateLimits {
    /// Bytes of memory.
    pub memory_bytes: u64,
    /// Processes and threads.
    pub pids: u64,
}

/// The protections of one backend as sets, to compare backends by, and its features.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Protections that it enforces on this host.
    pub enforced: BTreeSet<Protection>,
    /// Protections that it enforces by design but cannot enforce on this host.
    pub lacks_here: BTreeSet<Protection>,
    /// What its sandboxes can do besides running one stage.
    pub features: BTreeSet<Feature>,
}

impl Coverage {
    /// Split what a backend enforces by design into what it enforces here and what it cannot.
    pub fn new(
        by_design: &[Protection],
        lacks_here: &[MissingProtection],
        features: BTreeSet<Feature>,
    ) -> Self {
        let lacks_here: BTreeSet<_> = lacks_here.iter().map(|missing| missing.protection).collect();
        let enforced = by_design.iter().copied().filter(|name| !lacks_here.contains(name));
        Self { enforced: enforced.collect(), lacks_here, features }
    }

    /// Protections that it enforces on a host that provides everything.
    pub fn by_design(&self) -> BTreeSet<Protection> {
        self.enforced.union(&self.lacks_here).copied().collect()
    }
}

/// State of a pool of sandboxes that are prepared ahead, and how often a request found one ready.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PoolStats {
    /// Target number of ready sandboxes.
    pub wanted: usize,
    /// Sandboxes that are ready now.
    pub ready: usize,
    /// Further ready sandboxes, each with a compiled program that was requested more than once.
    pub loaded: usize,
    /// Stages that got a prepared sandbox, since the start.
    pub prepared_claims: u64,
    /// Stages that had to wait while a sandbox was built, since the start.
    pub built_claims: u64,
    /// Pools of runtimes that are started ahead, one for each kind.
    pub warm: Vec<WarmPoolStats>,
}

/// State of a pool of runtimes of one kind that wait for programs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WarmPoolStats {
    /// The language of the runtime.
    pub name: String,
    /// Target number of waiting runtimes.
    pub wanted: usize,
    /// Runtimes that wait now.
    pub ready: usize,
    /// Stages that got a waiting runtime.
    pub hits: u64,
    /// Stages that found none and started cold.
    pub misses: u64,
    /// Why the last start failed.
    pub failure: Option<String>,
}

/// Builds a sandbox around a stage and runs it. The plan is already validated, so a backend either
/// carries it out completely or returns the reason why it cannot.
pub trait Backend: Send + Sync {
    /// The name of the backend in reports.
    fn isolation(&self) -> Isolation;

    /// What the backend can enforce on this host.
    fn capabilities(&self) -> &Capabilities;

    /// Protections that the backend enforces on other hosts and cannot enforce on this one.
    fn lacks_here(&self) -> &[MissingProtection] {
        &[]
    }

    /// Protections that the backend enforces on this host, and those that the host prevents.
    fn coverage(&self) -> Coverage {
        let Capabilities { enforceable, features, .. } = self.capabilities();
        Coverage::new(enforceable, self.lacks_here(), features.clone())
    }

    /// State of its pool; `None` if it prepares nothing ahead.
    fn pool(&self) -> Option<PoolStats> {
        None
    }

    /// Whether it starts runtimes before a program is known, where a plan describes how.
    fn starts_runtimes_ahead(&self) -> bool {
        false
    }

    /// Creates a sandbox that lives until it is killed. Blocks until processes can be started in it.
    /// Wall-clock time and output are limited for each process, not by the specification; one with
    /// a limit on CPU time is refused.
    fn create(
        &self,
        spec: SandboxSpec,
        cancel: &CancelToken,
    ) -> Result<Box<dyn Instance + '_>, BackendError> {
        let _ = (spec, cancel);
        Err(BackendError::Unsupported(Feature::Instances))
    }

    /// Runs one stage and destroys its sandbox. Blocks until both are done.
    fn run(
        &self,
        plan: &StagePlan,
        observer: &mut dyn Observer,
        cancel: &CancelToken,
    ) -> Result<StageOutcome, BackendError>;
}
