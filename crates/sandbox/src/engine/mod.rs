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

/// What every execution shares.
pub(crate) struct Engine {
    pub(crate) backend: Box<dyn Backend>,
    pub(crate) runtimes: Arc<Runtimes>,
    pub(crate) hooks: Vec<Box<dyn Hooks>>,
    /// What is kept between executions, or why nothing can be.
    pub(crate) store: Result<Store, String>,
    /// What outlives executions by name; the user's own unless set up otherwise.
    pub(crate) workspaces: Option<Workspaces>,
    /// Where on the host volumes may lie.
    pub(crate) volume_places: VolumePlaces,
    /// Images that requests name.
    pub(crate) images: Images,
    /// Whether compile stages are looked up there.
    pub(crate) uses_compile_cache: bool,
}

/// A request that was taken: what is left to do needs no more of its author.
pub(crate) struct Job {
    request: Request,
    runtime: Runtime,
    /// The image that it is carried out in, with its walls.
    image: Option<Arc<ImageRoot>>,
    /// Its volumes, by the paths that they lead to.
    volumes: Vec<Volume>,
    acceptance: Acceptance,
    /// Why these walls and no others, if somebody chose for its author.
    pub(crate) isolation_reason: Option<String>,
}

/// Why the stages were left early.
enum Stop {
    /// The execution is over, and there is a report.
    Interrupted(Stage, Interruption),
    /// The request is not to be executed.
    Refused(ExecuteError),
}

impl Job {
    pub(crate) fn id(&self) -> ExecutionId {
        self.request.id()
    }
}

impl Engine {
    /// Takes a request or says why not. Nothing is built for it yet.
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

    /// What carries out a request, and the image it is in.
    pub(crate) fn runtime_for(
        &self,
        request: &Request,
    ) -> Result<(Runtime, Option<Arc<ImageRoot>>), ExecuteError> {
        match self.images.runtime(request, &self.runtimes)? {
            Some((runtime, image)) => Ok((runtime, Some(image))),
            None => Ok((self.runtimes.resolve(request.language())?, None)),
        }
    }

    /// What builds the walls for a request.
    fn backend_for<'a>(&'a self, job: &'a Job) -> &'a dyn Backend {
        job.image.as_ref().map_or(&*self.backend, |image| image.backend())
    }

    /// Carries out what was accepted.
    pub(crate) fn execute(
        &self,
        job: &Job,
        events: &mut Events<'_>,
        cancel: &CancelToken,
    ) -> Result<Report, ExecuteError> {
        events.queued();
        let mut results = Vec::new();
        let mut to_keep = None;
        // Before anything is made for it: one that somebody else writes to is a reason to refuse.
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
        // Writing to the disk is slow, and nobody waits for it now.
        if let (Some((key, compiled)), Ok(store)) = (to_keep, &self.store) {
            // The program was compiled and has run; that the next one compiles again is no failure.
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

    /// All workspaces there are here.
    pub(crate) fn workspaces(&self) -> Result<Workspaces, WorkspaceError> {
        self.workspaces.clone().map_or_else(Workspaces::of_user, Ok)
    }

    /// The workspace that the request names, for this execution.
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
        plan.volumes.clone_from(&job.volumes);
        let workspace = claim.map(Claim::plan).transpose();
        plan.workspace = workspace.map_err(|error| {
            Stop::Interrupted(Stage::Run, Interruption::Failed(with_causes(&error)))
        })?;
        results.push(self.run_stage(job, plan, events, cancel)?);
        Ok(())
    }

    /// The packages that the request asks for, built now if they never were.
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

    /// What a stage sees beside its own files, made if it is not there yet.
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
        // Code of packages can run when an interpreter starts: no clock runs while one waits.
        let brings_code = installed.is_some();
        let backend = self.backend_for(job);
        let can_wait = backend.starts_runtimes_ahead() && job.runtime.is_started_ahead(stage);
        if can_wait && !brings_code && !hides {
            // Shown to what starts cold too: nobody is to see a difference.
            let layers = self.layers(job, stage, Layer::is_shown_to_warm, events, cancel)?;
            context.trees.extend(layers);
            context.is_warm = true;
        }
        Ok(context)
    }

    /// An empty directory over each directory of packages that the host has installed for its own use.
    fn covers_of_host_packages(&self, runtime: &Runtime, stage: Stage) -> Result<Vec<Tree>, Stop> {
        let failed = |reason: String| Stop::Interrupted(stage, Interruption::Failed(reason));
        let store = self.store.as_ref().map_err(|reason| failed(reason.clone()))?;
        let empty = store.empty_directory().map_err(|error| failed(with_causes(&error)))?;
        let cover = |inside| Tree { host: empty.clone(), inside, copy_on_write: false };
        Ok(runtime.host_packages().into_iter().map(cover).collect())
    }

    /// Layers of the runtime, made if they are not there.
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

    /// Carries out a compile stage, unless what comes of it is known. What is worth knowing the next
    /// time goes into `to_keep`.
    fn compile(
        &self,
        job: &Job,
        plan: StagePlan,
        to_keep: &mut Option<(Key, Arc<Compiled>)>,
        events: &mut Events<'_>,
        cancel: &CancelToken,
    ) -> Result<(StageResult, Arc<Artefacts>), Stop> {
        let cache = match &self.store {
            Ok(store) if self.uses_compile_cache => store.compiled(),
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
            // As the compiler said it, which is not how it is told where a template was used.
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

    /// What is done before and after every stage, whatever gives its outcome.
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
            limits: plan.limits,
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

/// Keeps what the run stage left in its workspace, and tells what became of it.
fn settle(
    claim: Option<Claim>,
    results: &[StageResult],
) -> Result<Option<WorkspaceReport>, WorkspaceError> {
    let run = results.iter().find(|result| result.stage == Stage::Run);
    let outcome = run.and_then(|run| run.outcome.workspace.as_ref());
    claim.map(|claim| claim.settle(outcome)).transpose()
}

/// A backend refuses what its requester can change; everything else is a failure of ours.
fn stop_for(stage: Stage, error: BackendError) -> Stop {
    match error {
        BackendError::Refused(reason) => Stop::Refused(ExecuteError::Unsupported(reason)),
        error => Stop::Interrupted(stage, Interruption::Failed(with_causes(&error))),
    }
}

/// A compiler that ends well leaves something, unless what it left cannot be brought back.
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
