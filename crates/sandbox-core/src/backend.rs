use std::collections::BTreeSet;

use serde::Serialize;

use crate::{
    CancelToken, Isolation, NetworkEvent, Protection, StageOutcome, StagePlan, StreamKind,
    UsageSample,
};

/// A protection that this host cannot provide, the reason, and the remedy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MissingProtection {
    /// The protection.
    pub protection: Protection,
    /// Why the host cannot provide it.
    pub reason: String,
    /// What the operator can do about it.
    pub remedy: String,
}

/// What a backend can do on this host, found by probing.
#[derive(Clone, Debug, Default)]
pub struct Capabilities {
    /// Protections that it can enforce.
    pub enforceable: Vec<Protection>,
    /// Protections that it cannot enforce.
    pub missing: Vec<MissingProtection>,
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

/// The protections of one backend as sets, to compare backends by.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Protections that it enforces on this host.
    pub enforced: BTreeSet<Protection>,
    /// Protections that it enforces by design but cannot enforce on this host.
    pub lacks_here: BTreeSet<Protection>,
}

impl Coverage {
    /// Split what a backend enforces by design into what it enforces here and what it cannot.
    pub fn new(by_design: &[Protection], lacks_here: &[MissingProtection]) -> Self {
        let lacks_here: BTreeSet<_> = lacks_here.iter().map(|missing| missing.protection).collect();
        let enforced = by_design.iter().copied().filter(|name| !lacks_here.contains(name));
        Self { enforced: enforced.collect(), lacks_here }
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

/// Receives what happens while a stage runs. Called on the thread that supervises the stage: a slow
/// observer fills the program's pipes, which slows the program down and loses nothing.
pub trait Observer {
    /// The program wrote this.
    fn output(&mut self, stream: StreamKind, bytes: &[u8]);
    /// A sample of the program's resource usage.
    fn usage(&mut self, sample: UsageSample);
    /// The program tried to reach an address or to resolve a name.
    fn network(&mut self, _: NetworkEvent) {}
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
        Coverage::new(&self.capabilities().enforceable, self.lacks_here())
    }

    /// State of its pool; `None` if it prepares nothing ahead.
    fn pool(&self) -> Option<PoolStats> {
        None
    }

    /// Whether it starts runtimes before a program is known, where a plan describes how.
    fn starts_runtimes_ahead(&self) -> bool {
        false
    }

    /// Runs one stage and destroys its sandbox. Blocks until both are done.
    fn run(
        &self,
        plan: &StagePlan,
        observer: &mut dyn Observer,
        cancel: &CancelToken,
    ) -> Result<StageOutcome, BackendError>;
}

/// An internal error that prevented a stage from running. The outcome of a program is never an
/// error.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BackendError {
    /// The request requires a protection that this host cannot provide.
    #[error(
        "this host cannot enforce '{}': {}; {}; or allow it to be missing (--allow-missing {})",
        .0.protection, .0.reason, .0.remedy, .0.protection
    )]
    CannotEnforce(MissingProtection),
    /// The request cannot be carried out as it is, and the caller can change that.
    #[error("{0}")]
    Refused(String),
    /// A step of building or running the sandbox failed.
    #[error("{step}")]
    Failed {
        /// The step.
        step: String,
        /// The error of the operating system or of a lower layer.
        #[source]
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
}
