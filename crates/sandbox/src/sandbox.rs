use std::collections::BTreeSet;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use sandbox_backends::native::{Copies, NativeOptions, OuterLimits, Spare};
use sandbox_backends::oci::OciRuntime;
use sandbox_core::{
    Backend, ByteSize, CancelToken, Capabilities, Event, Isolation, PoolFigures, Protection,
    Report, Request, with_causes,
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

/// Executes requests. Make one and share it: executions through `&self` run in parallel.
pub struct Sandbox {
    engine: Arc<Engine>,
    /// Why its walls are built by what builds them, if that was chosen.
    reason: Option<String>,
}

/// What carrying out a request takes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Requirements {
    /// The language, by its own name.
    pub language: String,
    /// The version that would run it.
    pub version: String,
    /// The most memory that any of its stages may use.
    pub memory: ByteSize,
    /// How long its program may run; none if something else is to be done before, such as compiling it.
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
    /// A sandbox with every wall this host can build, and the recipes of this program and the user.
    pub fn new() -> Result<Self, StartError> {
        Self::builder().build()
    }

    /// Begins to set one up.
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

    /// The same, for another sandbox that is to know them too.
    pub fn shared_runtimes(&self) -> Arc<Runtimes> {
        Arc::clone(&self.engine.runtimes)
    }

    /// The environments of this user.
    pub fn environments(&self) -> Environments<'_> {
        self.engine.environments()
    }

    /// The workspaces that requests to this sandbox name.
    pub fn workspaces(&self) -> Result<Workspaces, WorkspaceError> {
        self.engine.workspaces()
    }

    /// What builds the walls.
    pub fn isolation(&self) -> Isolation {
        self.engine.backend.isolation()
    }

    /// Why that one, if it was chosen in an order of preference.
    pub fn isolation_reason(&self) -> Option<&str> {
        self.reason.as_deref()
    }

    /// Of several sandboxes the one that is preferred in this order, sharing everything with it. Its reports say why it
    /// is this one. There is none if the order names none of them.
    pub fn preferred<'a>(
        order: &[Isolation],
        among: impl IntoIterator<Item = &'a Self>,
    ) -> Option<Self> {
        let among: Vec<&Self> = among.into_iter().collect();
        let find = |isolation| among.iter().find(|sandbox| sandbox.isolation() == isolation);
        let there: Vec<_> = order.iter().copied().filter(|name| find(*name).is_some()).collect();
        let choice = choose(&there, &BTreeSet::new(), |isolation| {
            let sandbox = find(isolation).ok_or_else(|| "nobody started it".to_owned())?;
            Ok((*sandbox, sandbox.engine.backend.coverage()))
        });
        let choice = choice.ok()?;
        let engine = Arc::clone(&choice.taken.engine);
        Some(Self { engine, reason: Some(choice.reason) })
    }

    /// What can be enforced on this host.
    pub fn capabilities(&self) -> &Capabilities {
        self.engine.backend.capabilities()
    }

    /// What is kept between executions; nothing if there is no place for it.
    pub fn store(&self) -> Option<&Store> {
        self.engine.store.as_ref().ok()
    }

    /// The sandboxes that are prepared ahead of requests; none if the backend prepares none.
    pub fn pool(&self) -> Option<PoolFigures> {
        self.engine.backend.pool()
    }

    /// What a request takes, or why it would not be taken. Nothing is done for it, and hooks are not
    /// asked: for callers that let requests wait.
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

    /// Executes a request and waits for the report.
    ///
    /// An error means that the request was not taken. What goes wrong afterwards is in the report:
    /// with its own status if it was the program's doing, with [`Status::Error`] if it was ours.
    ///
    /// [`Status::Error`]: sandbox_core::Status::Error
    pub fn execute(&self, request: Request) -> Result<Report, ExecuteError> {
        self.execute_for(request, None, &CancelToken::new())
    }

    /// The same, telling events on the calling thread as they happen, and ended by the token.
    ///
    /// Output events belong to the stage that was announced last. While `on_event` is busy, the
    /// program can write only as much as its pipes hold.
    pub fn execute_with(
        &self,
        request: Request,
        on_event: &mut dyn FnMut(&Event),
        cancel: &CancelToken,
    ) -> Result<Report, ExecuteError> {
        self.execute_for(request, Some(on_event), cancel)
    }

    /// Starts a request on a thread of its own.
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
    /// Calls these hooks at each step, after those that were added before.
    pub fn hooks(mut self, hooks: impl Hooks + 'static) -> Self {
        self.hooks.push(Box::new(hooks));
        self
    }

    /// Leaves a wall out. Only tests and `doctor --attack` have a reason to: they show that an attack
    /// succeeds without the wall that stops it.
    pub fn without(mut self, protection: Protection) -> Self {
        self.native.without.insert(protection);
        self
    }

    /// How many prepared sandboxes to keep ready.
    pub fn spare_slots(mut self, slots: usize) -> Self {
        self.native.spare = Spare::Keep(slots);
        self.containers.docker.spare = slots;
        self.containers.oci.spare = slots;
        self
    }

    /// Prepares one sandbox at the start and keeps none ready after, for a process that will run one
    /// program and end.
    pub fn for_one_execution(mut self) -> Self {
        self.native.spare = Spare::Once(1);
        self.containers.docker.spare = 0;
        self.containers.oci.spare = 0;
        self.native.most_warm = 0;
        self
    }

    /// Whether runtimes of languages that can wait for a program are started ahead (they are, unless this
    /// says otherwise): a program then starts sooner than it would bare.
    pub fn warm(mut self, warm: bool) -> Self {
        self.native.most_warm = if warm { NativeOptions::default().most_warm } else { 0 };
        self
    }

    /// How many runtimes of one kind may wait at most. Each is a process with the memory that its runtime
    /// takes when it has started.
    pub fn max_warm(mut self, max: usize) -> Self {
        self.native.most_warm = max;
        self
    }

    /// When runtimes that wait are copies of one that was started before.
    pub fn copies(mut self, copies: Copies) -> Self {
        self.native.copies = copies;
        self
    }

    /// Has what may hold a thread up for long called by this function, for callers whose threads have other
    /// work as well.
    pub fn blocking_with(mut self, blocking: fn(&mut dyn FnMut())) -> Self {
        self.native.waits = blocking;
        self
    }

    /// What all native sandboxes of this value may use together: bytes of memory, and processes. Otherwise it is what the
    /// host has, less a tenth (at least 256 MiB and 1,024 processes).
    pub fn total_limits(mut self, memory_bytes: u64, pids: u64) -> Self {
        self.native.together = Some(OuterLimits { memory_bytes, pids });
        self
    }

    /// Uses no cgroups even where there are some, as on a host that gives us none.
    pub fn without_cgroups(mut self) -> Self {
        self.native.no_cgroups = true;
        self
    }

    /// Reads recipes from this directory instead of the user's configuration directory.
    pub fn runtimes_directory(mut self, directory: PathBuf) -> Self {
        self.runtimes_directory = Some(directory);
        self
    }

    /// Uses these languages, which may have looked at the host already, instead of reading recipes.
    pub fn runtimes(mut self, runtimes: Arc<Runtimes>) -> Self {
        self.runtimes = Some(runtimes);
        self
    }

    /// Keeps compiled programs and prepared layers here instead of in the user's cache directory.
    pub fn store_directory(mut self, directory: PathBuf) -> Self {
        self.store_directory = Some(directory);
        self
    }

    /// Keeps workspaces here instead of in the user's data directory.
    pub fn workspaces(mut self, workspaces: Workspaces) -> Self {
        self.workspaces = Some(workspaces);
        self
    }

    /// Takes only volumes whose host path lies at or below one of these, once the links on it are resolved; of none if the
    /// list is empty. Without this they may lie anywhere, for callers whose requests are their own.
    pub fn volumes_from(mut self, places: impl IntoIterator<Item = PathBuf>) -> Self {
        self.volume_places = VolumePlaces::only(places);
        self
    }

    /// Looks for images here instead of in the user's data directory.
    pub fn images(mut self, images: sandbox_images::Store) -> Self {
        self.images = Some(images);
        self
    }

    /// Compiles every program anew, also one that was compiled before.
    pub fn without_compile_cache(mut self) -> Self {
        self.uses_compile_cache = false;
        self
    }

    /// Has the walls built by this, instead of by the native backend.
    pub fn isolation(mut self, isolation: Isolation) -> Self {
        self.isolation = Some(isolation);
        self
    }

    /// Where the Docker Engine listens (`unix:///PATH`), if it is not at its usual place.
    pub fn docker_host(mut self, host: impl Into<String>) -> Self {
        self.containers.docker.host = Some(host.into());
        self
    }

    /// Which of the Engine's runtimes builds the containers of `Isolation::Docker`, by its name there, if it is not to be the one
    /// that the Engine prefers.
    pub fn docker_runtime(mut self, name: impl Into<String>) -> Self {
        self.containers.docker.runtime = Some(name.into());
        self
    }

    /// Which runtime builds the containers of `Isolation::Runc`, if it is not to be the first that is there.
    pub fn oci_runtime(mut self, runtime: OciRuntime) -> Self {
        self.containers.oci.runtime = Some(runtime);
        self
    }

    /// Looks at every isolation there is, with these settings. Nothing of that stays on the host.
    pub fn isolations(&self) -> Vec<IsolationStatus> {
        probe_all(&self.containers)
    }

    /// Choose the first of these isolations that enforces everything on this host. One that enforces less than another
    /// before it is never chosen. Reports say which it was, and why.
    pub fn isolation_order(mut self, order: impl IntoIterator<Item = Isolation>) -> Self {
        self.order = order.into_iter().collect();
        self
    }

    /// Choose by `isolation_order` as if these protections were not needed: those that every request allows to be missing.
    pub fn isolation_may_lack(mut self, allowed: impl IntoIterator<Item = Protection>) -> Self {
        self.allowed = allowed.into_iter().collect();
        self
    }

    /// Builds walls with this backend instead of the native one, whose settings then have no effect.
    pub fn backend(mut self, backend: Box<dyn Backend>) -> Self {
        self.backend = Some(backend);
        self
    }

    /// Reads the recipes, probes the host and starts what executions need.
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
            // What needs it will say so; an interpreter does not.
            store: store.map_err(|error| with_causes(&error)),
            workspaces: self.workspaces,
            volume_places: self.volume_places,
            // What was made with a wall missing is for nobody else.
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
    fn an_unknown_language_is_refused_before_anything_happens() {
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
