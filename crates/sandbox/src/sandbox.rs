use std::collections::BTreeSet;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use sandbox_backends::native::{ForkPolicy, NativeOptions, OuterLimits, Spare};
use sandbox_backends::oci::OciRuntime;
use sandbox_core::{
    Backend, ByteSize, CancelToken, Capabilities, Event, Isolation, PoolStats, Protection, Report,
    Request, with_causes,
};

use crate::backend::{self, ContainerOptions};
use crate::engine::{Engine, Job};
use crate::environment;
use crate::events::{Events, Listener};
use crate::image::{BackendOptions, Images};
use crate::isolation::{IsolationStatus, choose, probe_all, start_preferred};
use crate::store::Store;
use crate::volumes::VolumePlaces;
use crate::{
    Environments, ExecuteError, Execution, Hooks, Runtimes, StartError, WorkspaceError, Workspaces,
    plan,
};

/// Executes requests. Create one and share it: executions through `&self` run in parallel.
pub struct Sandbox {
    engine: Arc<Engine>,
    /// Why this backend was chosen, if an order of preference chose it.
    reason: Option<String>,
}

/// What a request needs, for callers that queue requests.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Requirements {
    /// The language, by its canonical name.
    pub language: String,
    /// The version of the toolchain.
    pub version: String,
    /// The largest memory limit of its stages.
    pub memory: ByteSize,
    /// The wall-clock limit of the run stage; `None` if a compile stage runs first.
    pub wall_time: Option<Duration>,
}

/// Sets up a [`Sandbox`].
#[must_use = "a builder does nothing until it is built"]
pub struct SandboxBuilder {
    native: NativeOptions,
    backend: Option<Box<dyn Backend>>,
    isolation: Option<Isolation>,
    containers: ContainerOptions,
    order: Vec<Isolation>,
    allowed: BTreeSet<Protection>,
    runtimes_directory: Option<PathBuf>,
    runtimes: Option<Arc<Runtimes>>,
    store_directory: Option<PathBuf>,
    workspaces: Option<Workspaces>,
    volume_places: VolumePlaces,
    images: Option<sandbox_images::Store>,
    uses_compile_cache: bool,
    hooks: Vec<Box<dyn Hooks>>,
}

impl Sandbox {
    /// Creates a sandbox with every protection this host supports, the built-in recipes and the user's own.
    pub fn new() -> Result<Self, StartError> {
        Self::builder().build()
    }

    /// Returns a builder with default settings.
    pub fn builder() -> SandboxBuilder {
        SandboxBuilder {
            native: NativeOptions::default(),
            backend: None,
            isolation: None,
            containers: ContainerOptions::default(),
            order: Vec::new(),
            allowed: BTreeSet::new(),
            runtimes_directory: None,
            runtimes: None,
            store_directory: None,
            workspaces: None,
            volume_places: VolumePlaces::default(),
            images: None,
            uses_compile_cache: true,
            hooks: Vec::new(),
        }
    }

    /// The languages.
    pub fn runtimes(&self) -> &Runtimes {
        &self.engine.runtimes
    }

    /// The languages, to share with another sandbox.
    pub fn shared_runtimes(&self) -> Arc<Runtimes> {
        Arc::clone(&self.engine.runtimes)
    }

    /// The user's named package environments.
    pub fn environments(&self) -> Environments<'_> {
        self.engine.environments()
    }

    /// The workspaces that requests can name.
    pub fn workspaces(&self) -> Result<Workspaces, WorkspaceError> {
        self.engine.workspaces()
    }

    /// The isolation backend.
    pub fn isolation(&self) -> Isolation {
        self.engine.backend.isolation()
    }

    /// Why this backend was chosen, if an order of preference chose it.
    pub fn isolation_reason(&self) -> Option<&str> {
        self.reason.as_deref()
    }

    /// Selects one of several sandboxes by this order of preference. The returned sandbox shares everything with the
    /// selected one, and its reports give the reason. Returns `None` if the order names none of them.
    pub fn preferred<'a>(
        order: &[Isolation],
        among: impl IntoIterator<Item = &'a Self>,
    ) -> Option<Self> {
        let among: Vec<&Self> = among.into_iter().collect();
        let find = |isolation| among.iter().find(|sandbox| sandbox.isolation() == isolation);
        let there: Vec<_> = order.iter().copied().filter(|name| find(*name).is_some()).collect();
        let choice = choose(&there, &BTreeSet::new(), |isolation| {
            let sandbox = find(isolation).ok_or_else(|| "it was not started".to_owned())?;
            Ok((*sandbox, sandbox.engine.backend.coverage()))
        });
        let choice = choice.ok()?;
        let engine = Arc::clone(&choice.selected.engine);
        Some(Self { engine, reason: Some(choice.reason) })
    }

    /// The protections that the backend can enforce on this host.
    pub fn capabilities(&self) -> &Capabilities {
        self.engine.backend.capabilities()
    }

    /// The store of compiled programs and layers; `None` if it could not be opened.
    pub fn store(&self) -> Option<&Store> {
        self.engine.store.as_ref().ok()
    }

    /// State of the pool of prepared sandboxes; `None` if the backend has no pool.
    pub fn pool(&self) -> Option<PoolStats> {
        self.engine.backend.pool()
    }

    /// Returns what a request needs, or why it would be refused. Starts nothing and calls no hooks: for callers
    /// that queue requests.
    pub fn requirements(&self, request: &Request) -> Result<Requirements, ExecuteError> {
        let (runtime, _) = self.engine.runtime_for(request)?;
        plan::check(&runtime, request)?;
        self.engine.volume_places.resolve(request.volumes())?;
        environment::locked(request, &runtime)?;
        Ok(Requirements {
            language: runtime.name().to_owned(),
            version: runtime.version().to_owned(),
            memory: plan::memory(&runtime, request),
            wall_time: (!runtime.compiles()).then(|| plan::wall_time(&runtime, request)),
        })
    }

    /// Executes a request and returns its report.
    ///
    /// An error means that the request was not accepted. Later failures are in the report: a failure of the
    /// program has a status of its own, an internal error has [`Status::Error`].
    ///
    /// [`Status::Error`]: sandbox_core::Status::Error
    pub fn execute(&self, request: Request) -> Result<Report, ExecuteError> {
        self.execute_for(request, None, &CancelToken::new())
    }

    /// Executes a request, calls `on_event` on this thread for each event, and stops when `cancel` is cancelled.
    ///
    /// Output events belong to the stage of the latest stage event. While `on_event` runs, the program can write
    /// only as much as its pipes hold.
    pub fn execute_with(
        &self,
        request: Request,
        on_event: &mut dyn FnMut(&Event),
        cancel: &CancelToken,
    ) -> Result<Report, ExecuteError> {
        self.execute_for(request, Some(on_event), cancel)
    }

    /// Starts a request on a new thread.
    pub fn start(&self, request: Request) -> Result<Execution, ExecuteError> {
        let job = self.accept(request)?;
        Execution::begin(Arc::clone(&self.engine), job)
    }

    fn execute_for(
        &self,
        request: Request,
        listener: Option<Listener<'_>>,
        cancel: &CancelToken,
    ) -> Result<Report, ExecuteError> {
        let job = self.accept(request)?;
        self.engine.execute(&job, &mut Events::new(listener), cancel)
    }

    fn accept(&self, request: Request) -> Result<Job, ExecuteError> {
        let mut job = self.engine.accept(request)?;
        job.isolation_reason.clone_from(&self.reason);
        Ok(job)
    }
}

impl SandboxBuilder {
    /// Adds hooks, which are called after those added before.
    pub fn hooks(mut self, hooks: impl Hooks + 'static) -> Self {
        self.hooks.push(Box::new(hooks));
        self
    }

    /// Disables a protection. For tests only: they show that an attack succeeds without the protection that
    /// stops it. In containers only `private-inodes` can be disabled.
    pub fn without(mut self, protection: Protection) -> Self {
        self.native.without.insert(protection);
        if protection == Protection::PrivateInodes {
            self.containers.docker.shares_inodes = true;
            self.containers.oci.shares_inodes = true;
        }
        self
    }

    /// Number of prepared sandboxes to keep ready.
    pub fn spare_slots(mut self, slots: usize) -> Self {
        self.native.spare = Spare::Keep(slots);
        self.containers.docker.spare = slots;
        self.containers.oci.spare = slots;
        self
    }

    /// Prepares one sandbox at the start and none afterwards, for a process that runs one program and exits.
    pub fn for_one_execution(mut self) -> Self {
        self.native.spare = Spare::Once(1);
        self.containers.docker.spare = 0;
        self.containers.oci.spare = 0;
        self.native.max_warm = 0;
        self
    }

    /// Whether to start runtimes before their program is known, where the language supports it (default: on). A
    /// program then starts sooner than outside a sandbox.
    pub fn warm(mut self, warm: bool) -> Self {
        self.native.max_warm = if warm { NativeOptions::default().max_warm } else { 0 };
        self
    }

    /// Maximum number of warm runtimes of one kind. Each is a process with the memory of a started runtime.
    pub fn max_warm(mut self, max: usize) -> Self {
        self.native.max_warm = max;
        self
    }

    /// When to fork warm runtimes from a zygote instead of starting each.
    pub fn fork_policy(mut self, policy: ForkPolicy) -> Self {
        self.native.fork_policy = policy;
        self
    }

    /// Runs blocking calls inside this function, for callers on async threads (`tokio::task::block_in_place`).
    pub fn blocking_with(mut self, blocking: fn(&mut dyn FnMut())) -> Self {
        self.native.waits = blocking;
        self
    }

    /// Limits for all native sandboxes of this value together: bytes of memory, and processes. Default: nine tenths of
    /// what the host has, leaving at least 256 MiB and 1,024 processes.
    pub fn total_limits(mut self, memory_bytes: u64, pids: u64) -> Self {
        self.native.aggregate_limits = Some(OuterLimits { memory_bytes, pids });
        self
    }

    /// Does not use cgroups even if they are available.
    pub fn without_cgroups(mut self) -> Self {
        self.native.no_cgroups = true;
        self
    }

    /// Reads recipes from this directory instead of the user's configuration directory.
    pub fn runtimes_directory(mut self, directory: PathBuf) -> Self {
        self.runtimes_directory = Some(directory);
        self
    }

    /// Uses these languages instead of reading recipes. Their toolchains may have been probed already.
    pub fn runtimes(mut self, runtimes: Arc<Runtimes>) -> Self {
        self.runtimes = Some(runtimes);
        self
    }

    /// Stores compiled programs and layers here instead of in the user's cache directory.
    pub fn store_directory(mut self, directory: PathBuf) -> Self {
        self.store_directory = Some(directory);
        self
    }

    /// Uses these workspaces instead of those in the user's data directory.
    pub fn workspaces(mut self, workspaces: Workspaces) -> Self {
        self.workspaces = Some(workspaces);
        self
    }

    /// Accepts only volumes whose resolved host path is one of these directories or below one; an empty list accepts none.
    /// Default: any host path, for callers that write their own requests.
    pub fn volumes_from(mut self, places: impl IntoIterator<Item = PathBuf>) -> Self {
        self.volume_places = VolumePlaces::only(places);
        self
    }

    /// Uses this image store instead of the one in the user's data directory.
    pub fn images(mut self, images: sandbox_images::Store) -> Self {
        self.images = Some(images);
        self
    }

    /// Disables the compile cache.
    pub fn without_compile_cache(mut self) -> Self {
        self.uses_compile_cache = false;
        self
    }

    /// Selects the isolation backend (default: native).
    pub fn isolation(mut self, isolation: Isolation) -> Self {
        self.isolation = Some(isolation);
        self
    }

    /// Address of the Docker Engine (`unix:///PATH`), if not the default.
    pub fn docker_host(mut self, host: impl Into<String>) -> Self {
        self.containers.docker.host = Some(host.into());
        self
    }

    /// Container runtime for `Isolation::Docker`, by its name in the Engine's configuration (default: the Engine's default
    /// runtime).
    pub fn docker_runtime(mut self, name: impl Into<String>) -> Self {
        self.containers.docker.runtime = Some(name.into());
        self
    }

    /// Container runtime for `Isolation::Runc` (default: the first one installed).
    pub fn oci_runtime(mut self, runtime: OciRuntime) -> Self {
        self.containers.oci.runtime = Some(runtime);
        self
    }

    /// Probes every isolation backend with these settings. Leaves nothing on the host.
    pub fn isolations(&self) -> Vec<IsolationStatus> {
        probe_all(&self.containers)
    }

    /// Selects the first of these backends that enforces everything on this host. A backend that enforces less than an
    /// earlier one is never selected. Reports give the backend and the reason.
    pub fn isolation_order(mut self, order: impl IntoIterator<Item = Isolation>) -> Self {
        self.order = order.into_iter().collect();
        self
    }

    /// Protections that `isolation_order` may ignore: those that every request allows to be missing.
    pub fn isolation_may_lack(mut self, allowed: impl IntoIterator<Item = Protection>) -> Self {
        self.allowed = allowed.into_iter().collect();
        self
    }

    /// Uses this backend. Settings of the built-in backends then have no effect.
    pub fn backend(mut self, backend: Box<dyn Backend>) -> Self {
        self.backend = Some(backend);
        self
    }

    /// Reads the recipes, probes the host and starts the backend.
    pub fn build(self) -> Result<Sandbox, StartError> {
        let runtimes = match self.runtimes {
            Some(runtimes) => runtimes,
            None => Arc::new(Runtimes::load(self.runtimes_directory.as_deref())?),
        };
        let is_complete = self.native.without.is_empty();
        let is_builtin = self.backend.is_none();
        let (backend, reason) = match (self.backend, self.isolation) {
            (Some(backend), _) => (backend, None),
            (None, None) if !self.order.is_empty() => {
                start_preferred(&self.order, &self.allowed, &self.native, &self.containers)?
            }
            (None, isolation) => {
                let isolation = isolation.unwrap_or(Isolation::Native);
                (backend::start(isolation, &self.native, &self.containers)?, None)
            }
        };
        let store = match &self.store_directory {
            Some(directory) => Store::open_in(directory, Store::DEFAULT_BOUND),
            None => Store::open(),
        };
        let options = is_builtin.then(|| BackendOptions {
            isolation: backend.isolation(),
            native: self.native,
            containers: self.containers,
        });
        let engine = Engine {
            backend,
            runtimes,
            images: Images::new(options, self.images),
            hooks: self.hooks,
            // An interpreter needs no store; a stage that does reports this error.
            store: store.map_err(|error| with_causes(&error)),
            workspaces: self.workspaces,
            volume_places: self.volume_places,
            // A program compiled without a protection must not be reused.
            uses_compile_cache: self.uses_compile_cache && is_complete,
        };
        Ok(Sandbox { engine: Arc::new(engine), reason })
    }
}

impl fmt::Debug for Sandbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sandbox")
            .field("isolation", &self.engine.backend.isolation())
            .field("runtimes", &self.engine.runtimes)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for SandboxBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SandboxBuilder")
            .field("native", &self.native)
            .field("runtimes_directory", &self.runtimes_directory)
            .field("store_directory", &self.store_directory)
            .field("hooks", &self.hooks.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripted::{Scripted, exited};
    use sandbox_core::Status;
    use std::sync::Barrier;
    use std::thread;

    fn sandbox(scripted: Scripted) -> Sandbox {
        Sandbox { engine: Arc::new(scripted.engine(Vec::new())), reason: None }
    }

    fn request() -> Request {
        Request::builder("script").code("").build().unwrap()
    }

    #[test]
    fn executions_run_in_parallel_through_a_shared_reference() {
        // Each stage waits for the other: one after the other, neither would end.
        let barrier = Arc::new(Barrier::new(2));
        let mut scripted = Scripted::new();
        for _ in 0..2 {
            let barrier = Arc::clone(&barrier);
            scripted = scripted.then(move |_, _, _| {
                barrier.wait();
                Ok(exited(0))
            });
        }
        let sandbox = sandbox(scripted);
        thread::scope(|scope| {
            let other = scope.spawn(|| sandbox.execute(request()).unwrap());
            let report = sandbox.execute(request()).unwrap();
            assert_eq!(report.status, Status::Completed);
            assert_ne!(other.join().unwrap().id, report.id);
        });
    }

    #[test]
    fn an_unknown_language_is_refused_before_any_event() {
        let sandbox = sandbox(Scripted::new());
        let unknown = || Request::builder("nonsense").code("").build().unwrap();
        let mut heard = 0;
        let mut listener = |_: &Event| heard += 1;
        let token = CancelToken::new();
        assert!(matches!(
            sandbox.execute_with(unknown(), &mut listener, &token),
            Err(ExecuteError::Language(_))
        ));
        assert_eq!(heard, 0);
        assert!(matches!(sandbox.start(unknown()), Err(ExecuteError::Language(_))));
    }
}
