//! The walls that this program builds itself, with namespaces, cgroups, seccomp and Landlock.
//!
//! `sandbox-linux` builds them; this module decides and watches: which limits the host can hold
//! (`host`), slots (`slots`) ready before they are needed (`pool`, `stock`, `refill`), some with a runtime that waits in
//! them (`warm`, `shelf`), a plan turned into an order (`order`), the loop that watches one sandbox
//! (`supervise`), how many fit at once (`descriptors`), a runtime's word that it ends (`leave`), the way out of it for stages of ours (`gate`) and what a program reaches through its allow-list (`reach`), and the verdict over how it ended
//! (`verdict`). What was used is taken down (`retire`), a moment
//! later (`bell`).

mod bell;
mod descriptors;
mod gate;
mod host;
mod leave;
pub(crate) mod network_memory;
mod order;
mod originals;
pub(crate) mod output;
mod pool;
mod reach;
mod refill;
mod retire;
mod shelf;
mod slots;
mod stdin;
mod stock;
pub(crate) mod supervise;
pub(crate) mod usage;
pub(crate) mod verdict;
mod warm;
pub(crate) mod workspace;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use sandbox_core::{
    Backend, BackendError, CancelToken, Capabilities, Isolation, MissingProtection, Observer,
    PoolFigures, Protection, StageOutcome, StagePlan,
};

use sandbox_linux::UnconfiguredLauncher;
use sandbox_linux::cgroup::Hierarchy;
pub use sandbox_linux::cgroup::OuterLimits;

use crate::{failed, shown_by_root};
use host::Host;
use pool::Pool;

/// How the native backend is set up.
#[derive(Clone, Debug)]
pub struct NativeOptions {
    /// Walls to leave out. Only tests and `doctor --attack` have a reason to name any: they show that
    /// an attack succeeds without the wall that stops it.
    pub without: BTreeSet<Protection>,
    /// What is prepared ahead of executions.
    pub spare: Spare,
    /// How many runtimes of one kind may be started before there is a program for them; 0 for none at all.
    pub most_warm: usize,
    /// When runtimes that allow it are copied rather than started.
    pub copies: Copies,
    /// What all sandboxes may use together; what the host has, less a reserve, if nothing is said.
    pub together: Option<OuterLimits>,
    /// Use no cgroups even where the host has them, as on a host that gives us none.
    pub no_cgroups: bool,
    /// Where the image was unpacked whose programs are used; the host's own if nothing is said.
    pub image: Option<PathBuf>,
    /// Calls what may hold its thread up for long: waiting for a program, and preparing a sandbox while somebody
    /// waits for it. A caller whose threads have other work as well can see to that work here.
    pub waits: fn(&mut dyn FnMut()),
}

/// Slots prepared before they are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spare {
    /// So many are kept ready.
    Keep(usize),
    /// So many are made at the start and none after, for a process that knows how few it will need.
    Once(usize),
}

/// When a runtime that is to wait is a copy of one that was started before, where its recipe allows that.
/// Copies are made sooner and have their memory's layout in common: see docs/adr/0015.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Copies {
    /// Never: each is started by itself.
    Never,
    /// While programs come faster than runtimes start.
    #[default]
    InAHurry,
    /// Always.
    Always,
}

/// The native backend.
pub struct NativeBackend {
    pool: Pool,
    /// Last, as the cgroup around all others goes with it.
    host: Arc<Host>,
}

impl NativeBackend {
    /// Probes the host, clears what an earlier crash left, and starts the launcher.
    pub fn start(options: &NativeOptions) -> Result<Self, BackendError> {
        let shown = shown_by_root(options.image.as_deref())?;
        descriptors::raise_limit();
        let hierarchy = if options.no_cgroups {
            Hierarchy::none("cgroups were turned off")
        } else {
            Hierarchy::detect()
        };
        // Both take milliseconds, in which this process has a host to look at.
        if let Some(prepare_attach) = hierarchy.attach_preparation() {
            spawn("sandbox-attach", prepare_attach)?;
        }
        let launcher = UnconfiguredLauncher::spawn()
            .map_err(|error| slots::launch_failed("start the launcher", error))?;
        let host = Arc::new(Host::probe(options, hierarchy, &shown)?);
        let pool = Pool::start(Arc::clone(&host), launcher, options)?;
        Ok(Self { pool, host })
    }

    /// How the host's cgroups are used, in a sentence.
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

    fn pool(&self) -> Option<PoolFigures> {
        Some(self.pool.figures())
    }

    fn starts_runtimes_ahead(&self) -> bool {
        self.pool.starts_runtimes_ahead()
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
        let running = order::send(&self.host, self.pool.maker(), slot, plan)?;
        let ended = supervise::watch(&self.host, running, plan, observer, cancel, begun)?;
        verdict::conclude(&self.host, ended, plan)
    }
}

impl Default for NativeOptions {
    fn default() -> Self {
        Self {
            without: BTreeSet::new(),
            spare: Spare::Keep(4),
            most_warm: 8,
            copies: Copies::default(),
            together: None,
            no_cgroups: false,
            image: None,
            waits: |wait| wait(),
        }
    }
}

/// Whether each sandbox gets user and group ids of its own, rather than the caller's: that takes root,
/// of a user namespace that has such ids.
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
