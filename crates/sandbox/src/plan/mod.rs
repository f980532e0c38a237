//! Turns a runtime and a request into stage plans. Pure: nothing here touches the host.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sandbox_core::{
    Artefacts, ByteSize, CollectRule, EgressProxy, InputFile, InvalidRequest, Limits,
    NetworkPolicy, ProcessSpec, RelativePath, Request, SandboxSpec, Stage, StagePlan, Stdin, Tree,
    WarmPlan,
};

use crate::runtime::{Compile, Layer, Recipe, Runtime, Values, Variables, Warm};

/// The work directory inside the sandbox.
const WORK_DIRECTORY: &str = "/work";
/// `PATH` inside the sandbox.
const SYSTEM_PATH: &str = "/usr/local/bin:/usr/bin:/bin";
/// Base environment of every program. `HOME` is not the work directory, so that files which tools write there are not
/// collected.
const BASE_ENVIRONMENT: &[(&str, &str)] =
    &[("HOME", "/tmp"), ("LANG", "C.UTF-8"), ("PATH", SYSTEM_PATH)];
/// Maximum number of output files in a report.
const MAX_OUTPUT_FILES: usize = 1000;
/// Maximum number of artefacts. A compiler can write one file for each class of a large project.
const MAX_ARTEFACTS: usize = 10_000;

/// Directory below the work directory in which a layer is built.
pub(crate) const LAYER_DIRECTORY: &str = "layer";
/// Maximum size of a layer, which is held in memory on its way into the store.
const MAX_LAYER_SIZE: ByteSize = ByteSize::mib(2048);
const MAX_LAYER_FILES: usize = 100_000;

/// Why a request cannot be planned.
#[derive(Debug)]
pub(crate) enum PlanError {
    /// Parts of the request contradict each other.
    Request(InvalidRequest),
    /// No file has an extension of the language's sources.
    NoSources { language: String, extensions: Vec<String> },
    /// The recipe names no directories of host packages to hide.
    HostPackages { language: String },
}

/// What a stage sees besides its files and the system's programs.
#[derive(Clone, Debug, Default)]
pub(crate) struct StageContext {
    /// Toolchain, layers, packages.
    pub(crate) trees: Vec<Tree>,
    /// Environment variables for them.
    pub(crate) variables: BTreeMap<String, String>,
    /// Whether a warm runtime may run the stage.
    pub(crate) is_warm: bool,
}

impl From<InvalidRequest> for PlanError {
    fn from(error: InvalidRequest) -> Self {
        Self::Request(error)
    }
}

/// Refuses a request that could never run, before anything is built for it.
pub(crate) fn check(runtime: &Runtime, request: &Request) -> Result<(), PlanError> {
    let recipe = runtime.recipe();
    if request.code().is_some() {
        refuse_second_entry(recipe.entry(), request)?;
    }
    if !request.host_packages() && runtime.image().is_none() && recipe.host_packages.is_empty() {
        return Err(PlanError::HostPackages { language: runtime.name().to_owned() });
    }
    let files = input_files(recipe, request);
    refuse_too_large("run", &files, &run_limits(recipe, request))?;
    if let Some(compile) = &recipe.compile {
        refuse_too_large("compile", &files, &compile_limits(recipe, request))?;
        if compile.takes_sources() && sources(recipe, &files).is_empty() {
            return Err(PlanError::NoSources {
                language: runtime.name().to_owned(),
                extensions: recipe.extensions.clone(),
            });
        }
    }
    Ok(())
}

/// The largest memory limit of the stages, which run one after the other.
pub(crate) fn memory(runtime: &Runtime, request: &Request) -> ByteSize {
    let recipe = runtime.recipe();
    let run = run_limits(recipe, request).memory();
    if runtime.compiles() { run.max(compile_limits(recipe, request).memory()) } else { run }
}

/// Wall-clock limit of the run stage.
pub(crate) fn wall_time(runtime: &Runtime, request: &Request) -> Duration {
    run_limits(runtime.recipe(), request).wall_time()
}

/// The compile stage, if the language has one.
pub(crate) fn compile(
    runtime: &Runtime,
    request: &Request,
    context: StageContext,
) -> Option<StagePlan> {
    let recipe = runtime.recipe();
    let compile = recipe.compile.as_ref()?;
    let limits = compile_limits(recipe, request);
    let files = input_files(recipe, request);
    let sources = sources(recipe, &files);
    let values = Values {
        program: &runtime.program().to_string_lossy(),
        root: &runtime.root().to_string_lossy(),
        entry: &as_argument(&files[0].path, None),
        sources: &sources,
        memory_mb: megabytes(limits.memory()),
    };
    let mut env = environment(runtime, &compile.environment, &values);
    env.extend(context.variables);
    let warm = compile.warm.as_ref().filter(|_| context.is_warm);
    let name = format!("{} compiler", runtime.name());
    let warm = warm.map(|warm| self::warm(name, warm, &env, &values));
    let collect = artefacts(compile, &files, &limits, &run_limits(recipe, request));
    let process = ProcessSpec::new(compile.command.expand(&values), env);
    let sandbox = SandboxSpec {
        owner: request.workspaces_of().map(ToOwned::to_owned),
        files,
        warm,
        trees: context.trees,
        allow_missing: request.allow_missing().clone(),
        ..SandboxSpec::new(limits)
    };
    Some(StagePlan { collect, ..StagePlan::new(Stage::Compile, sandbox, process) })
}

/// The run stage, with the artefacts of the compile stage. Takes the request's standard input, so it is called once for
/// each request: a reader can be used only once.
pub(crate) fn run(
    runtime: &Runtime,
    request: &Request,
    artefacts: Arc<Artefacts>,
    context: StageContext,
) -> StagePlan {
    let recipe = runtime.recipe();
    let limits = run_limits(recipe, request);
    let files = input_files(recipe, request);
    let sources = sources(recipe, &files);
    let values = Values {
        program: &runtime.program().to_string_lossy(),
        root: &runtime.root().to_string_lossy(),
        entry: &as_argument(&files[0].path, request.workdir()),
        sources: &sources,
        memory_mb: megabytes(limits.memory()),
    };
    let mut command = recipe.run.command.expand(&values);
    if request.workdir().is_some()
        && let Some(program) = command[0].strip_prefix("./")
    {
        command[0] = format!("{WORK_DIRECTORY}/{program}");
    }
    command.extend_from_slice(request.args());
    let mut env = environment(runtime, &recipe.run.environment, &values);
    env.extend(context.variables);
    // A warm runtime has its network already.
    let may_wait = context.is_warm && request.network() != NetworkPolicy::Allowlist;
    let warm = recipe.run.warm.as_ref().filter(|_| may_wait);
    let name = runtime.name().to_owned();
    let warm = warm.map(|warm| self::warm(name, warm, &env, &values));
    env.extend(request.env().clone());
    let collect = collected(request, &limits);
    // The engine adds volumes and a workspace.
    let sandbox = SandboxSpec {
        owner: request.workspaces_of().map(ToOwned::to_owned),
        files: without_replaced(files, &artefacts),
        artefacts,
        network: request.network(),
        allow: request.allow().cloned(),
        warm,
        trees: context.trees,
        allow_missing: request.allow_missing().clone(),
        ..SandboxSpec::new(limits)
    };
    let process = ProcessSpec {
        command,
        env,
        directory: request.workdir().map_or_else(String::new, ToString::to_string),
        stdin: take_stdin(request),
    };
    StagePlan {
        collect,
        usage_interval: request.usage_interval(),
        ..StagePlan::new(Stage::Run, sandbox, process)
    }
}

/// How to start a warm runtime. Of the request it contains only the limits.
fn warm(
    name: String,
    warm: &Warm,
    env: &BTreeMap<String, String>,
    values: &Values<'_>,
) -> Arc<WarmPlan> {
    let values = Values { entry: "", sources: &[], ..*values };
    let mut env = env.clone();
    for (name, value) in &warm.environment {
        env.insert(name.0.clone(), value.expand(&values));
    }
    for (name, value) in &warm.prepend {
        let first = value.expand(&values);
        env.entry(name.0.clone())
            .and_modify(|rest| *rest = format!("{first}:{rest}"))
            .or_insert(first);
    }
    let files = warm.files.iter().map(|(path, text)| InputFile {
        path: path.0.clone(),
        contents: text.expand(&values).into_bytes(),
        executable: false,
    });
    let command = warm.command.expand(&values);
    Arc::new(WarmPlan { name, command, env, files: files.collect(), forks: warm.forks })
}

/// The stage that builds a layer of a toolchain.
pub(crate) fn layer(runtime: &Runtime, layer: &Layer) -> StagePlan {
    let limits = layer.limits.fill(&Limits::compile());
    let values = Values {
        program: &runtime.program().to_string_lossy(),
        root: &runtime.root().to_string_lossy(),
        entry: "",
        sources: &[],
        memory_mb: megabytes(limits.memory()),
    };
    let globs = format!("{LAYER_DIRECTORY}/**").parse().expect("this pattern is well formed");
    let env = environment(runtime, &Variables::new(), &values);
    let sandbox = SandboxSpec { trees: runtime.trees().to_vec(), ..SandboxSpec::new(limits) };
    StagePlan {
        collect: CollectRule { globs: vec![globs], total: MAX_LAYER_SIZE, count: MAX_LAYER_FILES },
        ..internal_stage(layer.command.expand(&values), env, sandbox)
    }
}

/// A stage of our own, such as building a layer. It contains nothing of any request.
fn internal_stage(
    command: Vec<String>,
    env: BTreeMap<String, String>,
    sandbox: SandboxSpec,
) -> StagePlan {
    StagePlan::new(Stage::Compile, sandbox, ProcessSpec::new(command, env))
}

/// The stage that runs a program of an image with these arguments, such as `--version`.
pub(crate) fn query(
    program: &Path,
    args: &[String],
    variables: &BTreeMap<String, String>,
) -> StagePlan {
    let base = BASE_ENVIRONMENT.iter().map(|(name, value)| ((*name).into(), (*value).into()));
    let variables = variables.iter().map(|(name, value)| (name.clone(), value.clone()));
    let program = program.to_string_lossy().into_owned();
    let command = std::iter::once(program).chain(args.iter().cloned()).collect();
    internal_stage(command, base.chain(variables).collect(), SandboxSpec::new(Limits::compile()))
}

/// A step of fetching and installing packages.
pub(crate) struct PackageStep<'a> {
    pub(crate) command: Vec<String>,
    pub(crate) files: Vec<InputFile>,
    pub(crate) trees: Vec<Tree>,
    pub(crate) variables: BTreeMap<String, String>,
    pub(crate) egress_proxy: Option<EgressProxy>,
    /// Patterns of the files to collect.
    pub(crate) collect: &'a [&'a str],
}

/// The stage for a step.
pub(crate) fn packages(runtime: &Runtime, step: PackageStep<'_>) -> StagePlan {
    let limits = package_limits();
    let values = Values {
        program: &runtime.program().to_string_lossy(),
        root: &runtime.root().to_string_lossy(),
        entry: "",
        sources: &[],
        memory_mb: megabytes(limits.memory()),
    };
    let globs = step.collect.iter().map(|glob| glob.parse().expect("these are well formed"));
    let collect =
        CollectRule { globs: globs.collect(), total: MAX_LAYER_SIZE, count: MAX_LAYER_FILES };
    let mut trees = runtime.trees().to_vec();
    trees.extend(step.trees);
    let mut env = environment(runtime, &Variables::new(), &values);
    env.extend(step.variables);
    let sandbox = SandboxSpec {
        files: step.files,
        egress_proxy: step.egress_proxy,
        trees,
        ..SandboxSpec::new(limits)
    };
    StagePlan { collect, ..internal_stage(step.command, env, sandbox) }
}

/// Limits that fit the largest packages in common use, which are held in memory while they are built.
pub(crate) fn package_limits() -> Limits {
    let limits = Limits::compile()
        .with_wall_time(Duration::from_mins(10))
        .and_then(|limits| limits.with_memory(ByteSize::mib(4096)))
        .and_then(|limits| limits.with_disk(ByteSize::mib(3072)))
        .and_then(|limits| limits.with_output(ByteSize::mib(8)))
        .and_then(|limits| limits.with_cpus(4.0))
        .and_then(|limits| limits.with_pids(512))
        .and_then(|limits| limits.with_open_files(4096));
    limits.expect("these are within their ranges").requested_like(&Limits::compile())
}

fn compile_limits(recipe: &Recipe, request: &Request) -> Limits {
    recipe.limits.compile.fill(request.compile_limits())
}

fn run_limits(recipe: &Recipe, request: &Request) -> Limits {
    recipe.limits.run.fill(request.run_limits())
}

/// The files as the work directory holds them, the entry point first.
fn input_files(recipe: &Recipe, request: &Request) -> Vec<InputFile> {
    let code = request.code().map(|code| InputFile {
        path: recipe.entry().clone(),
        contents: code.as_bytes().to_vec(),
        executable: false,
    });
    code.into_iter().chain(request.files().iter().cloned()).collect()
}

/// The code text gets its file name from the recipe. No other file may have that path, lie below it or contain it.
fn refuse_second_entry(entry: &RelativePath, request: &Request) -> Result<(), InvalidRequest> {
    let lies_in = |inner: &RelativePath, outer: &RelativePath| {
        inner
            .as_str()
            .strip_prefix(outer.as_str())
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    for file in request.files() {
        if lies_in(&file.path, entry) || lies_in(entry, &file.path) {
            return Err(InvalidRequest::SamePath(file.path.clone()));
        }
    }
    Ok(())
}

fn refuse_too_large(
    stage: &str,
    files: &[InputFile],
    limits: &Limits,
) -> Result<(), InvalidRequest> {
    let total = total_size(files);
    if total > limits.disk().as_u64() {
        return Err(InvalidRequest::TooLarge(format!(
            "the files are {total} bytes together, over the disk limit of {} of the {stage} stage",
            limits.disk()
        )));
    }
    if files.len() as u64 > limits.inodes() {
        return Err(InvalidRequest::TooLarge(format!(
            "{} files are more than the {} that fit the disk limit of {} of the {stage} stage",
            files.len(),
            limits.inodes(),
            limits.disk()
        )));
    }
    Ok(())
}

fn total_size(files: &[InputFile]) -> u64 {
    files.iter().map(|file| file.contents.len() as u64).sum()
}

/// Source files for the compiler, named as the user wrote them, so that compiler messages use these names.
fn sources(recipe: &Recipe, files: &[InputFile]) -> Vec<String> {
    let is_source = |path: &RelativePath| {
        path.extension()
            .is_some_and(|extension| recipe.extensions.iter().any(|known| known == extension))
    };
    files
        .iter()
        .filter(|file| is_source(&file.path))
        .map(|file| as_argument(&file.path, None))
        .collect()
}

/// A path as a command argument, relative to a directory below the work directory. A name that starts like an option
/// (`-`) or a response file (`@`) gets the prefix `./`.
fn as_argument(path: &RelativePath, directory: Option<&RelativePath>) -> String {
    let mut names: Vec<&str> = path.components().collect();
    if let Some(directory) = directory {
        let directory: Vec<&str> = directory.components().collect();
        let shared = names.iter().zip(&directory).take_while(|(left, right)| left == right).count();
        // The file is never the directory itself, but its path can be a prefix of the directory's.
        let shared = shared.min(names.len() - 1);
        let upwards = std::iter::repeat_n("..", directory.len() - shared);
        names = upwards.chain(names[shared..].iter().copied()).collect();
    }
    let text = names.join("/");
    if text.starts_with(['-', '@']) { format!("./{text}") } else { text }
}

/// Variables of every program, then of the language, then of the stage.
fn environment(
    runtime: &Runtime,
    of_stage: &Variables,
    values: &Values<'_>,
) -> BTreeMap<String, String> {
    let base =
        BASE_ENVIRONMENT.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let mut variables: BTreeMap<String, String> = base.collect();
    if let Some(image) = runtime.image() {
        variables.extend(image.variables.clone());
    }
    if !runtime.is_system() {
        // The toolchain's other programs must be found by name, like those of the system.
        let path = format!("{}/bin:{SYSTEM_PATH}", runtime.root().display());
        variables.insert("PATH".to_owned(), path);
    }
    for (name, value) in runtime.recipe().environment.iter().chain(of_stage) {
        variables.insert(name.0.clone(), value.expand(values));
    }
    variables
}

/// Artefacts must fit into the run stage's disk limit together with the request's files.
fn artefacts(
    compile: &Compile,
    files: &[InputFile],
    compile_limits: &Limits,
    run_limits: &Limits,
) -> CollectRule {
    let room = run_limits.disk().as_u64().saturating_sub(total_size(files));
    CollectRule {
        globs: compile.artefacts().to_vec(),
        total: ByteSize::bytes(room).min(compile_limits.disk()),
        count: MAX_ARTEFACTS,
    }
}

fn collected(request: &Request, limits: &Limits) -> CollectRule {
    if request.collect().is_empty() {
        return CollectRule::nothing();
    }
    CollectRule {
        globs: request.collect().to_vec(),
        total: limits.output(),
        count: MAX_OUTPUT_FILES,
    }
}

/// Drops files that an artefact of the same path replaces, as it did in the compile stage.
fn without_replaced(files: Vec<InputFile>, artefacts: &Artefacts) -> Vec<InputFile> {
    let artefacts = &artefacts.files;
    let replaced = |file: &InputFile| artefacts.iter().any(|other| other.path == file.path);
    files.into_iter().filter(|file| !replaced(file)).collect()
}

fn take_stdin(request: &Request) -> Stdin {
    match request.stdin() {
        Stdin::Empty => Stdin::Empty,
        Stdin::Bytes(bytes) => Stdin::Bytes(bytes.clone()),
        Stdin::Reader(reader) => {
            let reader = reader.lock().unwrap_or_else(PoisonError::into_inner).take();
            Stdin::Reader(Mutex::new(reader))
        }
    }
}

fn megabytes(size: ByteSize) -> u64 {
    size.as_u64() / (1024 * 1024)
}

#[cfg(test)]
mod tests;
