//! The native backend: builds sandboxes itself, with namespaces, cgroups, seccomp and Landlock.
//!
//! `sandbox-linux` provides the mechanisms; this module decides what to use and supervises. `host`
//! probes what the host can enforce. `pool` holds slots that `refill` prepares ahead with `slots`,
//! according to the demand in `pool_state`; `warm`, `warm_pool` and `zygote` do the same for
//! runtimes. `descriptors` admits as many sandboxes as fit, and `cpu_shares`
//! keeps one owner from delaying the others. `exec_request` translates a plan,
//! `supervise` watches the program, `early_exit` shortens its end, `egress` and `egress_proxy` give
//! it network access, and `verdict` determines the outcome. `instance` does the same for a sandbox
//! that runs any number of programs. `teardown` destroys used slots, woken
//! by `deferred_waker` after the response.

mod cpu_shares;
mod deferred_waker;
mod denied_calls;
mod descriptors;
mod early_exit;
mod egress;
mod egress_proxy;
mod exec_request;
mod host;
mod instance;
mod pool;
mod pool_state;
mod refill;
mod slots;
mod stdin;
mod streams;
mod supervise;
mod teardown;
mod verdict;
mod warm;
mod warm_pool;
mod zygote;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use sandbox_core::{
    Backend, BackendError, CancelToken, Capabilities, Instance, Isolation, MissingProtection,
    Observer, PoolStats, Protection, SandboxSpec, StageOutcome, StagePlan,
};

use sandbox_linux::UnconfiguredLauncher;
use sandbox_linux::cgroup::Hierarchy;
pub use sandbox_linux::cgroup::OuterLimits;

use crate::error::failed;
use crate::image::shown_by_root;
use host::Host;
use instance::NativeInstance;
use pool::Pool;

/// Options of the native backend.
#[derive(Clone, Debug)]
pub struct NativeOptions {
    /// Protections to leave out. Only tests and `doctor --attack` set this: they show that an
    /// attack succeeds without the protection that stops it.
    pub without: BTreeSet<Protection>,
    /// Slots to prepare ahead of executions.
    pub spare: Spare,
    /// Maximum number of runtimes of one kind that wait for programs; 0 starts none ahead.
    pub max_warm: usize,
    /// When to fork runtimes from a zygote instead of starting them.
    pub fork_policy: ForkPolicy,
    /// Limits on all sandboxes together. Default: what the host has, less a reserve.
    pub aggregate_limits: Option<OuterLimits>,
    /// Use no cgroups even if the host has them.
    pub no_cgroups: bool,
    /// The directory of the unpacked image whose programs are used. Default: the host's programs.
    pub image: Option<PathBuf>,
    /// Called around operations that block for long: waiting for a program, and preparing a sandbox
    /// for a waiting request. A caller whose threads have other work can release them here.
    pub waits: fn(&mut dyn FnMut()),
}

/// How many slots to prepare before they are requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spare {
    /// Keep this many ready.
    Keep(usize),
    /// Prepare this many at the start and none later, for a process that knows how few it needs.
    Once(usize),
}

/// When a runtime that waits for a program is forked from a zygote, if its recipe supports that.
/// Forking is faster than starting; all forks of one zygote share a memory layout (docs/adr/0015).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ForkPolicy {
    /// Never fork: start each runtime separately.
    Never,
    /// Fork while programs arrive faster than runtimes start.
    #[default]
    OnDemand,
    /// Always fork.
    Always,
}

/// The native backend.
pub struct NativeBackend {
    pool: Pool,
    /// Last, because dropping it removes the cgroup around all sandboxes.
    host: Arc<Host>,
}

impl NativeBackend {
    /// Probes the host, removes leftovers of an earlier crash, and starts the launcher.
    pub fn start(options: &NativeOptions) -> Result<Self, BackendError> {
        let shown = shown_by_root(options.image.as_deref())?;
        descriptors::raise_limit();
        let mut hierarchy = if options.no_cgroups {
            Hierarchy::none("cgroups were turned off")
        } else {
            Hierarchy::detect()
        };
        let aggregate_limits = host::enclose(&mut hierarchy, options)?;
        // Both take milliseconds, during which this process probes the host. No cgroup can be made
        // during the first, so the ones above and that of the first sandbox are there already.
        if let Some(prepare_attach) = hierarchy.attach_preparation() {
            spawn("sandbox-attach", prepare_attach)?;
        }
        let launcher = UnconfiguredLauncher::spawn()
            .map_err(|error| slots::launch_failed("start the launcher", error))?;
        let host = Arc::new(Host::probe(options, hierarchy, aggregate_limits, &shown)?);
        let pool = Pool::start(Arc::clone(&host), launcher, options)?;
        Ok(Self { pool, host })
    }

    /// How cgroups are used, in a sentence.
    pub fn describe_cgroups(&self) -> String {
        self.host.hierarchy.describe()
    }
}

impl Backend for NativeBackend {
    fn isolation(&self) -> Isolation {
        Isolation::Native
    }

    fn capabilities(&self) -> &Capabilities {
        &self.host.capabilities
    }

    fn lacks_here(&self) -> &[MissingProtection] {
        &self.host.capabilities.missing
    }

    fn pool(&self) -> Option<PoolStats> {
        Some(self.pool.stats())
    }

    fn starts_runtimes_ahead(&self) -> bool {
        self.pool.starts_runtimes_ahead()
    }

    fn create(
        &self,
        spec: SandboxSpec,
        cancel: &CancelToken,
    ) -> Result<Box<dyn Instance + '_>, BackendError> {
        Ok(Box::new(NativeInstance::create(&self.host, &self.pool, spec, cancel)?))
    }

    fn run(
        &self,
        plan: &StagePlan,
        observer: &mut dyn Observer,
        cancel: &CancelToken,
    ) -> Result<StageOutcome, BackendError> {
        let begun = Instant::now();
        self.host.check(plan)?;
        let Some(slot) = self.pool.claim(plan, cancel)? else {
            return Ok(verdict::cancelled(plan, begun.elapsed()));
        };
        let running = exec_request::send(&self.host, self.pool.slot_factory(), slot, plan)?;
        let (program, ended) = supervise::watch(&self.host, running, plan, observer, cancel)?;
        verdict::conclude(&self.host, program, ended, plan, begun)
    }
}

impl Default for NativeOptions {
    fn default() -> Self {
        Self {
            without: BTreeSet::new(),
            spare: Spare::Keep(4),
            max_warm: 8,
            fork_policy: ForkPolicy::default(),
            aggregate_limits: None,
            no_cgroups: false,
            image: None,
            waits: |wait| wait(),
        }
    }
}

/// Whether each sandbox gets user and group IDs of its own, rather than the caller's. That requires
/// root in a user namespace that maps such IDs.
pub fn sandboxes_have_own_ids() -> bool {
    sandbox_linux::ids::are_available()
}

fn spawn(
    name: &str,
    work: impl FnOnce() + Send + 'static,
) -> Result<std::thread::JoinHandle<()>, BackendError> {
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(work)
        .map_err(|error| failed("start a thread", error))
}
