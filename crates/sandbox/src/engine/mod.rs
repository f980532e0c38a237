//! One execution, step by step: accept, compile, run, report.

use std::sync::Arc;
use std::time::Duration;

use chrono::Utc;
use sandbox_core::{
    Acceptance, Artefacts, Backend, BackendError, CancelToken, ExecutionId, InputFile, Observer,
    Report, Request, SkippedFile, Stage, StageOutcome, StagePlan, Tree, Volume, WorkspaceReport,
    with_causes,
};

use crate::environment::{self, BuildContext, Environments, Installed};
use crate::events::Events;
use crate::image::{ImageRoot, Images};
use crate::layers::{LayerError, Layers};
use crate::plan::StageContext;
use crate::report::{self, Header, Interruption, StageResult};
use crate::runtime::Layer;
use crate::snippet::{self, Lines};
use crate::store::{Compiled, Key, Store};
use crate::volumes::VolumePlaces;
use crate::workspace::Claim;
use crate::{
    ExecuteError, Hooks, PackageError, Runtime, Runtimes, WorkspaceError, Workspaces,
    compile_cache, plan,
};

/// State shared by all executions.
pub(crate) struct Engine {
    pub(crate) backend: Box<dyn Backend>,
    pub(crate) runtimes: Arc<Runtimes>,
    pub(crate) hooks: Vec<Box<dyn Hooks>>,
    /// The store, or why it could not be opened.
    pub(crate) store: Result<Store, String>,
    /// The workspaces; `None` for those of the user.
    pub(crate) workspaces: Option<Workspaces>,
    /// Host directories that volumes may be in.
    pub(crate) volume_places: VolumePlaces,
    /// Images and their backends.
    pub(crate) images: Images,
    /// Whether compile stages use the compile cache of the store.
    pub(crate) uses_compile_cache: bool,
}

/// An accepted request, with everything resolved that can be resolved before it runs.
pub(crate) struct Job {
    request: Request,
    runtime: Runtime,
    /// The image that it runs in, with its backend.
    image: Option<Arc<ImageRoot>>,
    /// Its volumes, with resolved host paths.
    volumes: Vec<Volume>,
    acceptance: Acceptance,
    /// Why this backend was chosen, if an order of preference chose it.
    pub(crate) isolation_reason: Option<String>,
}

/// Why the stages ended early.
enum Stop {
    /// The execution has ended, and there is a report.
    Interrupted(Stage, Interruption),
    /// The request is refused.
    Refused(ExecuteError),
}

impl Job {
    pub(crate) fn id(&self) -> ExecutionId {
        self.request.id()
    }
}

impl Engine {
    /// Accepts or refuses a request. Builds nothing yet.
    pub(crate) fn accept(&self, request: Request) -> Result<Job, ExecuteError> {
        for hook in &self.hooks {
            hook.on_request(&request)?;
        }
        let (runtime, image) = self.runtime_for(&request)?;
        plan::check(&runtime, &request)?;
        let volumes = self.volume_places.resolve(request.volumes())?;
        let now = Acceptance { at: Utc::now(), waited: Duration::ZERO };
        let acceptance = request.acceptance().unwrap_or(now);
        Ok(Job { request, runtime, image, volumes, acceptance, isolation_reason: None })
    }

    /// The runtime for a request, and its image if it runs in one.
    pub(crate) fn runtime_for(
        &self,
        request: &Request,
    ) -> Result<(Runtime, Option<Arc<ImageRoot>>), ExecuteError> {
        match self.images.runtime(request, &self.runtimes)? {
            Some((runtime, image)) => Ok((runtime, Some(image))),
            None => Ok((self.runtimes.resolve(request.language())?, None)),
        }
    }

    /// The backend for a request.
    fn backend_for<'a>(&'a self, job: &'a Job) -> &'a dyn Backend {
        job.image.as_ref().map_or(&*self.backend, |image| image.backend())
    }

    /// Executes an accepted request.
    pub(crate) fn execute(
        &self,
        job: &Job,
        events: &mut Events<'_>,
        cancel: &CancelToken,
    ) -> Result<Report, ExecuteError> {
        events.queued();
        let mut results = Vec::new();
        let mut to_keep = None;
        // Claim first, before anything is built: a workspace in use refuses the request.
        let claim = self.claim_workspace(&job.request)?;
        let stages =
            self.run_stages(job, claim.as_ref(), &mut results, &mut to_keep, events, cancel);
        let mut interruption = match stages {
            Ok(()) => None,
            Err(Stop::Interrupted(stage, interruption)) => Some((stage, interruption)),
            Err(Stop::Refused(error)) => return Err(error),
        };
        let workspace = settle(claim, &results).unwrap_or_else(|error| {
            let reason = Interruption::Failed(with_causes(&error));
            interruption.get_or_insert((Stage::Run, reason));
            None
        });
        let header = Header {
            id: job.id(),
            language: job.runtime.name().to_owned(),
            version: job.runtime.version().to_owned(),
            isolation: self.backend.isolation(),
            isolation_reason: job.isolation_reason.clone(),
            image: job.runtime.image().map(|image| image.name.clone()),
            acceptance: job.acceptance,
            workspace,
        };
        let report = report::assemble(header, &results, interruption);
        for hook in &self.hooks {
            hook.on_report(&report);
        }
        let report = events.report(report);
        // Write to the disk after the report: it is slow, and the client does not need it.
        if let (Some((key, compiled)), Ok(store)) = (to_keep, &self.store) {
            // A failed write only means that the program is compiled again next time.
            let owner = job.request.compile_cache_owner();
            let _ = store.compiled().put(owner, &key, &compiled);
        }
        Ok(report)
    }

    /// The named environments, and the means to build them.
    pub(crate) fn environments(&self) -> Environments<'_> {
        Environments::new(&self.runtimes, self.build_context())
    }

    fn build_context(&self) -> BuildContext<'_> {
        let store = self.store.as_ref().map_err(String::as_str);
        BuildContext { backend: self.backend.as_ref(), store }
    }

    /// The workspaces that requests can name.
    pub(crate) fn workspaces(&self) -> Result<Workspaces, WorkspaceError> {
        self.workspaces.clone().map_or_else(Workspaces::of_user, Ok)
    }

    /// Claims the workspace that the request names.
    fn claim_workspace(&self, request: &Request) -> Result<Option<Claim>, WorkspaceError> {
        let Some(choice) = request.workspace() else {
            return Ok(None);
        };
        let workspaces = self.workspaces()?;
        let workspaces = match request.workspaces_of() {
            Some(owner) => workspaces.of_owner(owner),
            None => workspaces,
        };
        workspaces.claim(choice).map(Some)
    }

    fn run_stages(
        &self,
        job: &Job,
        claim: Option<&Claim>,
        results: &mut Vec<StageResult>,
        to_keep: &mut Option<(Key, Arc<Compiled>)>,
        events: &mut Events<'_>,
        cancel: &CancelToken,
    ) -> Result<(), Stop> {
        let mut artefacts = Arc::default();
        let installed = self.install_packages(job, events, cancel)?;
        let installed = installed.as_ref();
        if job.runtime.compiles() {
            let context = self.stage_context(job, Stage::Compile, installed, events, cancel)?;
            let plan = plan::compile(&job.runtime, &job.request, context)
                .expect("a runtime that compiles has a compile stage");
            let (mut compiled, left) = self.compile(job, plan, to_keep, events, cancel)?;
            let succeeded = compiled.succeeded();
            artefacts = left;
            let skipped = std::mem::take(&mut compiled.outcome.skipped);
            results.push(compiled);
            if !succeeded {
                return Ok(());
            }
            refuse_empty(&artefacts.files, &skipped)?;
        }
        let context = self.stage_context(job, Stage::Run, installed, events, cancel)?;
        let mut plan = plan::run(&job.runtime, &job.request, artefacts, context);
        plan.sandbox.volumes.clone_from(&job.volumes);
        let workspace = claim.map(Claim::plan).transpose();
        plan.sandbox.workspace = workspace.map_err(|error| {
            Stop::Interrupted(Stage::Run, Interruption::Failed(with_causes(&error)))
        })?;
        results.push(self.run_stage(job, plan, events, cancel)?);
        Ok(())
    }

    /// Installs the packages that the request names, unless they are installed already.
    fn install_packages(
        &self,
        job: &Job,
        events: &mut Events<'_>,
        cancel: &CancelToken,
    ) -> Result<Option<Installed>, Stop> {
        let mut progress = |message: &str| events.progress(message);
        let context = self.build_context();
        environment::install(&job.request, &job.runtime, context, &mut progress, cancel).map_err(
            |error| match error {
                PackageError::Cancelled => {
                    Stop::Interrupted(Stage::Compile, Interruption::Cancelled)
                }
                error => Stop::Refused(error.into()),
            },
        )
    }

    /// What a stage sees besides its own files. Builds missing layers.
    fn stage_context(
        &self,
        job: &Job,
        stage: Stage,
        installed: Option<&Installed>,
        events: &mut Events<'_>,
        cancel: &CancelToken,
    ) -> Result<StageContext, Stop> {
        let mut context = StageContext::default();
        context.trees.extend_from_slice(job.runtime.trees_in(stage));
        let hides = !job.request.host_packages() && job.runtime.image().is_none();
        if hides {
            context.trees.extend(self.covers_of_host_packages(&job.runtime, stage)?);
        }
        if let Some(installed) = installed {
            context.trees.push(installed.tree.clone());
            context.variables.clone_from(&installed.variables);
        }
        if job.runtime.has_layers(stage) {
            let shown = |layer: &Layer| layer.is_shown_to(stage);
            context.trees.extend(self.layers(job, stage, shown, events, cancel)?);
        }
        // Package code can run when an interpreter starts, and a warm runtime starts without a time limit.
        let brings_code = installed.is_some();
        let backend = self.backend_for(job);
        let can_wait = backend.starts_runtimes_ahead() && job.runtime.is_started_ahead(stage);
        if can_wait && !brings_code && !hides {
            // Mounted for cold starts too, so that cold and warm executions see the same files.
            let layers = self.layers(job, stage, Layer::is_shown_to_warm, events, cancel)?;
            context.trees.extend(layers);
            context.is_warm = true;
        }
        Ok(context)
    }

    /// Mounts an empty directory over each directory of host packages.
    fn covers_of_host_packages(&self, runtime: &Runtime, stage: Stage) -> Result<Vec<Tree>, Stop> {
        let failed = |reason: String| Stop::Interrupted(stage, Interruption::Failed(reason));
        let store = self.store.as_ref().map_err(|reason| failed(reason.clone()))?;
        let empty = store.empty_directory().map_err(|error| failed(with_causes(&error)))?;
        let cover = |inside| Tree { host: empty.clone(), inside, copy_on_write: false };
        Ok(runtime.host_packages().into_iter().map(cover).collect())
    }

    /// The wanted layers of the runtime. Builds those that are missing.
    fn layers(
        &self,
        job: &Job,
        stage: Stage,
        is_wanted: impl Fn(&Layer) -> bool,
        events: &mut Events<'_>,
        cancel: &CancelToken,
    ) -> Result<Vec<Tree>, Stop> {
        if !job.runtime.recipe().layers.values().any(&is_wanted) {
            return Ok(Vec::new());
        }
        let failed = |reason: String| Stop::Interrupted(stage, Interruption::Failed(reason));
        let store = self.store.as_ref().map_err(|reason| failed(reason.clone()))?;
        let layers = Layers { store: store.layers(), backend: self.backend_for(job) };
        let mut progress = |message: &str| events.progress(message);
        layers.trees(&job.runtime, is_wanted, &mut progress, cancel).map_err(|error| match error {
            LayerError::Cancelled => Stop::Interrupted(stage, Interruption::Cancelled),
            error => failed(with_causes(&error)),
        })
    }

    /// Runs a compile stage, or replays it from the cache. A result to cache goes into `to_keep`.
    fn compile(
        &self,
        job: &Job,
        plan: StagePlan,
        to_keep: &mut Option<(Key, Arc<Compiled>)>,
        events: &mut Events<'_>,
        cancel: &CancelToken,
    ) -> Result<(StageResult, Arc<Artefacts>), Stop> {
        let cache = match &self.store {
            Ok(store) if self.uses_compile_cache && job.request.uses_compile_cache() => {
                store.compiled()
            }
            _ => {
                let mut result = self.run_stage(job, plan, events, cancel)?;
                let files = std::mem::take(&mut result.outcome.files);
                return Ok((result, Arc::new(Artefacts::new(None, files))));
            }
        };
        let owner = job.request.compile_cache_owner();
        let key = compile_cache::key(&job.runtime, self.backend.isolation(), &plan, owner);
        if let Some(known) =
            cache.get(owner, &key).filter(|known| compile_cache::fits(known, &plan))
        {
            let result = self.with_hooks(job, plan, events, cancel, true, |_, observer| {
                Ok(compile_cache::replay(&known, observer))
            })?;
            return Ok((result, Arc::clone(&known.artefacts)));
        }
        let mut result = self.with_hooks(job, plan, events, cancel, false, |plan, observer| {
            let mut outcome = self.backend_for(job).run(plan, observer, cancel)?;
            // Cache the compiler's own output, before line numbers are mapped for a template.
            *to_keep = compile_cache::keep(&key, &mut outcome).map(|compiled| (key, compiled));
            Ok(outcome)
        })?;
        let files = std::mem::take(&mut result.outcome.files);
        let artefacts = match to_keep {
            Some((_, compiled)) => Arc::clone(&compiled.artefacts),
            None => Arc::new(Artefacts::new(None, files)),
        };
        Ok((result, artefacts))
    }

    fn run_stage(
        &self,
        job: &Job,
        plan: StagePlan,
        events: &mut Events<'_>,
        cancel: &CancelToken,
    ) -> Result<StageResult, Stop> {
        self.with_hooks(job, plan, events, cancel, false, |plan, observer| {
            self.backend_for(job).run(plan, observer, cancel)
        })
    }

    /// Calls hooks and sends events around a stage.
    fn with_hooks(
        &self,
        job: &Job,
        plan: StagePlan,
        events: &mut Events<'_>,
        cancel: &CancelToken,
        cached: bool,
        run: impl FnOnce(&StagePlan, &mut dyn Observer) -> Result<StageOutcome, BackendError>,
    ) -> Result<StageResult, Stop> {
        let stage = plan.stage;
        for hook in &self.hooks {
            hook.before_stage(job.id(), &plan).map_err(|refusal| Stop::Refused(refusal.into()))?;
        }
        if cancel.is_cancelled() {
            return Err(Stop::Interrupted(stage, Interruption::Cancelled));
        }
        events.stage_begins(stage);
        let lines = Lines::of(&job.request, job.runtime.recipe().entry());
        let outcome =
            snippet::rewrite_output(lines.as_ref(), stage, events, |observer| run(&plan, observer));
        events.stage_ended();
        let result = StageResult {
            stage,
            limits: plan.sandbox.limits,
            collect: plan.collect,
            cached,
            outcome: outcome.map_err(|error| stop_for(stage, error))?,
        };
        if !self.hooks.is_empty() {
            let report = result.report();
            for hook in &self.hooks {
                hook.after_stage(job.id(), &report);
            }
        }
        Ok(result)
    }
}

/// Saves the workspace after the run stage, and reports whether it was saved.
fn settle(
    claim: Option<Claim>,
    results: &[StageResult],
) -> Result<Option<WorkspaceReport>, WorkspaceError> {
    let run = results.iter().find(|result| result.stage == Stage::Run);
    let outcome = run.and_then(|run| run.outcome.workspace.as_ref());
    claim.map(|claim| claim.settle(outcome)).transpose()
}

/// A refusal of the backend refuses the request; every other backend error is an internal error.
fn stop_for(stage: Stage, error: BackendError) -> Stop {
    match error {
        BackendError::Refused(reason) => Stop::Refused(ExecuteError::Unsupported(reason)),
        error => Stop::Interrupted(stage, Interruption::Failed(with_causes(&error))),
    }
}

/// Fails if a successful compiler left no artefact, or none that could be collected.
fn refuse_empty(artefacts: &[InputFile], skipped: &[SkippedFile]) -> Result<(), Stop> {
    if !artefacts.is_empty() {
        return Ok(());
    }
    let reason = match skipped.first() {
        Some(file) => format!("compiling left '{}', and {}", file.path, file.reason),
        None => "compiling left nothing to run".to_owned(),
    };
    Err(Stop::Interrupted(Stage::Compile, Interruption::NothingToRun(reason)))
}

#[cfg(test)]
mod tests;
