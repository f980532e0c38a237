//! From a runtime and a request to the stages that carry it out. Nothing here touches the host.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sandbox_core::{
    Artefacts, ByteSize, CollectRule, Gate, InputFile, InvalidRequest, Limits, NetworkPolicy,
    RelativePath, Request, Stage, StagePlan, Stdin, Tree, WarmPlan,
};

use crate::ExecuteError;
use crate::runtime::{Compile, Layer, Recipe, Runtime, Values, Variables, Warm};

/// Where the work directory is inside.
const WORK_DIRECTORY: &str = "/work";
/// Where programs are looked for inside.
const SYSTEM_PATH: &str = "/usr/local/bin:/usr/bin:/bin";
/// The environment every program starts from. Home is not the work directory, so that what tools
/// leave there does not appear among collected files.
const BASE_ENVIRONMENT: &[(&str, &str)] =
    &[("HOME", "/tmp"), ("LANG", "C.UTF-8"), ("PATH", SYSTEM_PATH)];
/// More files than a person or a report wants to see.
const MOST_COLLECTED: usize = 1000;
/// A compiler may leave a file for each class of a large project.
const MOST_ARTEFACTS: usize = 10_000;

/// Below the work directory, where a layer is put together.
pub(crate) const LAYER_DIRECTORY: &str = "layer";
/// The largest layer; it passes through our memory on its way into the store.
const LARGEST_LAYER: ByteSize = ByteSize::mib(2048);
const MOST_LAYER_FILES: usize = 100_000;

/// What a stage sees beside its files and the system's programs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Surroundings {
    /// Toolchain, layers, packages.
    pub(crate) trees: Vec<Tree>,
    /// Variables that go with them.
    pub(crate) variables: BTreeMap<String, String>,
    /// Whether what carries out the stage may be started before its program is known.
    pub(crate) is_started_ahead: bool,
}

/// Refuses what could never be carried out, before anything is built for it.
pub(crate) fn check(runtime: &Runtime, request: &Request) -> Result<(), ExecuteError> {
    let recipe = runtime.recipe();
    if request.code().is_some() {
        refuse_second_entry(recipe.entry(), request)?;
    }
    let files = input_files(recipe, request);
    refuse_too_large("run", &files, &run_limits(recipe, request))?;
    if let Some(compile) = &recipe.compile {
        refuse_too_large("compile", &files, &compile_limits(recipe, request))?;
        if compile.takes_sources() && sources(recipe, &files).is_empty() {
            return Err(ExecuteError::NoSources {
                language: runtime.name().to_owned(),
                extensions: recipe.extensions.clone(),
            });
        }
    }
    Ok(())
}

/// The most memory that any stage of the request may use; they run one after the other.
pub(crate) fn memory(runtime: &Runtime, request: &Request) -> ByteSize {
    let recipe = runtime.recipe();
    let run = run_limits(recipe, request).memory();
    if runtime.compiles() { run.max(compile_limits(recipe, request).memory()) } else { run }
}

/// How long the run stage may take.
pub(crate) fn wall_time(runtime: &Runtime, request: &Request) -> Duration {
    run_limits(runtime.recipe(), request).wall_time()
}

/// The compile stage, if the language has one.
pub(crate) fn compile(
    runtime: &Runtime,
    request: &Request,
    surroundings: Surroundings,
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
    env.extend(surroundings.variables);
    let warm = compile.warm.as_ref().filter(|_| surroundings.is_started_ahead);
    let name = format!("{} compiler", runtime.name());
    let warm = warm.map(|warm| self::warm(name, warm, &env, &values));
    Some(StagePlan {
        stage: Stage::Compile,
        command: compile.command.expand(&values),
        env,
        collect: artefacts(compile, &files, &limits, &run_limits(recipe, request)),
        files,
        artefacts: Arc::default(),
        directory: String::new(),
        stdin: Stdin::Empty,
        limits,
        network: NetworkPolicy::None,
        allow: None,
        gate: None,
        volumes: Vec::new(),
        workspace: None,
        warm,
        trees: surroundings.trees,
        allow_missing: request.allow_missing().clone(),
        usage_interval: None,
    })
}

/// The run stage, with what the compile stage left. The request's standard input goes into it, and a
/// reader can go only once: this is called once for a request.
pub(crate) fn run(
    runtime: &Runtime,
    request: &Request,
    artefacts: Arc<Artefacts>,
    surroundings: Surroundings,
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
    env.extend(surroundings.variables);
    // One that waits has its walls already.
    let may_wait = surroundings.is_started_ahead && request.network() != NetworkPolicy::Allowlist;
    let warm = recipe.run.warm.as_ref().filter(|_| may_wait);
    let name = runtime.name().to_owned();
    let warm = warm.map(|warm| self::warm(name, warm, &env, &values));
    env.extend(request.env().clone());
    StagePlan {
        stage: Stage::Run,
        command,
        env,
        files: beside(files, &artefacts),
        artefacts,
        directory: request.workdir().map_or_else(String::new, ToString::to_string),
        stdin: take_stdin(request),
        network: request.network(),
        allow: request.allow().cloned(),
        gate: None,
        // The engine has these, and puts them in.
        volumes: Vec::new(),
        workspace: None,
        warm,
        trees: surroundings.trees,
        collect: collected(request, &limits),
        limits,
        allow_missing: request.allow_missing().clone(),
        usage_interval: request.usage_interval(),
    }
}

/// How a runtime is started that is to wait for a program. Nothing of the request is in it but limits.
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

/// What makes a layer of a toolchain.
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
    StagePlan {
        trees: runtime.trees().to_vec(),
        collect: CollectRule { globs: vec![globs], total: LARGEST_LAYER, count: MOST_LAYER_FILES },
        ..of_ours(layer.command.expand(&values), env, limits)
    }
}

/// A stage that we need ourselves. Nothing of any request is in it.
fn of_ours(command: Vec<String>, env: BTreeMap<String, String>, limits: Limits) -> StagePlan {
    StagePlan {
        stage: Stage::Compile,
        command,
        env,
        files: Vec::new(),
        artefacts: Arc::default(),
        directory: String::new(),
        stdin: Stdin::Empty,
        limits,
        network: NetworkPolicy::None,
        allow: None,
        gate: None,
        volumes: Vec::new(),
        workspace: None,
        warm: None,
        trees: Vec::new(),
        collect: CollectRule::nothing(),
        allow_missing: BTreeSet::new(),
        usage_interval: None,
    }
}

/// What asks a program of an image a question.
pub(crate) fn question(
    program: &Path,
    args: &[String],
    variables: &BTreeMap<String, String>,
) -> StagePlan {
    let base = BASE_ENVIRONMENT.iter().map(|(name, value)| ((*name).into(), (*value).into()));
    let variables = variables.iter().map(|(name, value)| (name.clone(), value.clone()));
    let program = program.to_string_lossy().into_owned();
    let command = std::iter::once(program).chain(args.iter().cloned()).collect();
    of_ours(command, base.chain(variables).collect(), Limits::compile())
}

/// A step of fetching and installing packages.
pub(crate) struct PackageStep<'a> {
    pub(crate) command: Vec<String>,
    pub(crate) files: Vec<InputFile>,
    pub(crate) trees: Vec<Tree>,
    pub(crate) variables: BTreeMap<String, String>,
    pub(crate) gate: Option<Gate>,
    /// Patterns of what to bring back.
    pub(crate) collect: &'a [&'a str],
}

/// What carries out such a step.
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
        CollectRule { globs: globs.collect(), total: LARGEST_LAYER, count: MOST_LAYER_FILES };
    let mut trees = runtime.trees().to_vec();
    trees.extend(step.trees);
    let mut env = environment(runtime, &Variables::new(), &values);
    env.extend(step.variables);
    StagePlan {
        files: step.files,
        gate: step.gate,
        trees,
        collect,
        ..of_ours(step.command, env, limits)
    }
}

/// Room for the largest packages that people use, which lie in memory while they are built.
pub(crate) fn package_limits() -> Limits {
    let limits = Limits::compile()
        .with_wall_time(Duration::from_mins(10))
        .and_then(|limits| limits.with_memory(ByteSize::mib(4096)))
        .and_then(|limits| limits.with_disk(ByteSize::mib(3072)))
        .and_then(|limits| limits.with_output(ByteSize::mib(8)))
        .and_then(|limits| limits.with_cpus(4.0))
        .and_then(|limits| limits.with_pids(512))
        .and_then(|limits| limits.with_open_files(4096));
    limits.expect("these are within their ranges").asked_like(&Limits::compile())
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

/// The code text gets a name from the recipe, which no file may have, nor be in, nor hold.
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

/// The files a compiler is told of, named as the user wrote them, so that its messages are too.
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

/// A path as an argument, seen from a directory below the work directory. A name that begins like an
/// option or like a file of arguments is made to begin like a path.
fn as_argument(path: &RelativePath, directory: Option<&RelativePath>) -> String {
    let mut names: Vec<&str> = path.components().collect();
    if let Some(directory) = directory {
        let directory: Vec<&str> = directory.components().collect();
        let shared = names.iter().zip(&directory).take_while(|(left, right)| left == right).count();
        // The file cannot be the directory itself, but its name may run along with it.
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
        // Its other programs are found by name, as those of the system are.
        let path = format!("{}/bin:{SYSTEM_PATH}", runtime.root().display());
        variables.insert("PATH".to_owned(), path);
    }
    for (name, value) in runtime.recipe().environment.iter().chain(of_stage) {
        variables.insert(name.0.clone(), value.expand(values));
    }
    variables
}

/// Artefacts must fit into the run stage's disk beside the files that are there already.
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
        count: MOST_ARTEFACTS,
    }
}

fn collected(request: &Request, limits: &Limits) -> CollectRule {
    if request.collect().is_empty() {
        return CollectRule::nothing();
    }
    CollectRule { globs: request.collect().to_vec(), total: limits.output(), count: MOST_COLLECTED }
}

/// An artefact takes the place of a file of the same name, as it did in the compile stage.
fn beside(files: Vec<InputFile>, artefacts: &Artefacts) -> Vec<InputFile> {
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
mod tests {
    use super::*;
    use crate::runtime::tests::{of_text, unprobed as built_in};
    use sandbox_core::CollectedFile;
    use sandbox_core::{Protection, RequestBuilder, Volume};
    use std::io::Read;
    use std::time::Duration;

    /// A language with a compile stage, as plain as one can be.
    const C: &str = r#"
name = "c"
extensions = ["c"]
entry = "main.c"
[toolchain]
programs = ["/usr/bin/the-c"]
version = { args = [] }
[compile]
command = ["{program}", "-o", "program", "{sources}", "-lm"]
artefacts = ["program"]
[run]
command = ["./program"]
[hello]
code = ""
expected = ""
"#;

    fn unprobed(language: &str) -> Runtime {
        if language == "c" { of_text(C) } else { built_in(language) }
    }

    fn build(builder: RequestBuilder) -> Request {
        builder.build().unwrap()
    }

    fn paths(plan: &StagePlan) -> Vec<&str> {
        plan.all_files().map(|file| file.path.as_str()).collect()
    }

    #[test]
    fn code_text_becomes_the_entry_file() {
        let request = build(Request::builder("python").code("1").file("data.txt", "x"));
        let runtime = unprobed("python");
        assert!(compile(&runtime, &request, Surroundings::default()).is_none());
        let plan = run(&runtime, &request, Arc::default(), Surroundings::default());
        assert_eq!(plan.command, ["/usr/bin/the-python", "main.py"]);
        assert_eq!(paths(&plan), ["main.py", "data.txt"]);
        assert_eq!(plan.files[0].contents, b"1");
        assert_eq!(plan.env["PYTHONUNBUFFERED"], "1");
        assert_eq!(plan.env["PATH"], "/usr/local/bin:/usr/bin:/bin");
        assert_eq!(plan.env["HOME"], "/tmp");
    }

    #[test]
    fn the_memory_of_a_request_is_that_of_its_largest_stage() {
        let asked = |mib| Limits::run().with_memory(ByteSize::mib(mib)).unwrap();
        let request = |mib| build(Request::builder("c").code("1").limits(asked(mib)));
        assert_eq!(memory(&unprobed("python"), &request(100)), ByteSize::mib(100));
        assert_eq!(memory(&unprobed("c"), &request(100)), Limits::compile().memory());
        assert_eq!(memory(&unprobed("c"), &request(4096)), ByteSize::mib(4096));
    }

    #[test]
    fn without_code_text_the_first_file_is_the_entry() {
        let builder = Request::builder("python").file("app/start.py", "").file("a.py", "");
        let request = build(builder.args(["-x", "y"]).env("LANG", "C").env("MINE", "{entry}"));
        let plan = run(&unprobed("python"), &request, Arc::default(), Surroundings::default());
        assert_eq!(plan.command, ["/usr/bin/the-python", "app/start.py", "-x", "y"]);
        assert_eq!((plan.env["LANG"].as_str(), plan.env["MINE"].as_str()), ("C", "{entry}"));
    }

    #[test]
    fn every_source_is_compiled_and_headers_are_only_there() {
        let builder = Request::builder("c").code("").file("lib/a.c", "").file("a.h", "");
        let request = build(builder.file("-o.c", "").file("@x.c", ""));
        let plan = compile(&unprobed("c"), &request, Surroundings::default()).unwrap();
        let sources = ["main.c", "lib/a.c", "./-o.c", "./@x.c"];
        let told = plan.command.windows(sources.len()).filter(|words| *words == sources).count();
        assert_eq!(told, 1, "{:?}", plan.command);
        assert_eq!(paths(&plan), ["main.c", "lib/a.c", "a.h", "-o.c", "@x.c"]);
        assert!(plan.collect.globs[0].matches("program"));
    }

    #[test]
    fn a_compiler_gets_nothing_that_is_meant_for_the_program() {
        let volume: Volume = "/srv:/data".parse().unwrap();
        let builder = Request::builder("c").code("").stdin("in").env("A", "b").args(["x"]);
        let builder = builder.network(NetworkPolicy::Localhost).volume(volume).workdir("sub");
        let builder = builder.usage_interval(Duration::from_millis(10));
        let request = build(builder.allow_missing(Protection::Landlock).collect("*"));
        let plan = compile(&unprobed("c"), &request, Surroundings::default()).unwrap();
        assert_eq!((plan.stage, plan.directory.as_str()), (Stage::Compile, ""));
        assert!(matches!(plan.stdin, Stdin::Empty));
        assert_eq!(plan.network, NetworkPolicy::None);
        assert!(plan.volumes.is_empty() && !plan.env.contains_key("A"));
        assert_eq!(plan.limits, Limits::compile());
        assert!(plan.usage_interval.is_none());
        let plan = run(&unprobed("c"), &request, Arc::default(), Surroundings::default());
        assert!(matches!(&plan.stdin, Stdin::Bytes(bytes) if bytes == b"in"));
        assert_eq!(plan.network, NetworkPolicy::Localhost);
        assert_eq!(plan.env["A"].as_str(), "b");
        assert_eq!(plan.limits, Limits::run());
        assert!(plan.allow_missing.contains(&Protection::Landlock));
        assert_eq!(plan.collect.total, Limits::run().output());
    }

    #[test]
    fn artefacts_join_the_files_and_keep_their_mode() {
        let request = build(Request::builder("c").code("").file("program", "old"));
        let artefact =
            CollectedFile { path: "program".into(), contents: b"new".to_vec(), executable: true };
        let artefacts = Arc::new(Artefacts::new(None, vec![artefact]));
        let plan = run(&unprobed("c"), &request, artefacts, Surroundings::default());
        assert_eq!(plan.command, ["./program"]);
        assert_eq!(paths(&plan), ["main.c", "program"]);
        let files: Vec<&InputFile> = plan.all_files().collect();
        assert_eq!(files[1].contents, b"new");
        assert!(files[1].executable && !files[0].executable);
    }

    #[test]
    fn the_entry_is_found_from_another_directory() {
        let command = |language: &str, file: &str, directory: &str| {
            let builder = Request::builder(language).file(file, "").workdir(directory);
            let plan =
                run(&unprobed(language), &build(builder), Arc::default(), Surroundings::default());
            assert_eq!(plan.directory, directory);
            plan.command.last().unwrap().clone()
        };
        assert_eq!(command("python", "main.py", "sub/deep"), "../../main.py");
        assert_eq!(command("python", "sub/main.py", "sub"), "main.py");
        assert_eq!(command("python", "sub/a/main.py", "sub/b"), "../a/main.py");
        assert_eq!(command("python", "sub", "sub"), "../sub");
        assert_eq!(command("c", "main.c", "sub"), "/work/program");
    }

    #[test]
    fn a_file_cannot_have_the_name_of_the_code_text() {
        let runtime = unprobed("python");
        for path in ["main.py", "main.py/x"] {
            let request = build(Request::builder("python").code("1").file(path, ""));
            assert!(
                matches!(
                    check(&runtime, &request),
                    Err(ExecuteError::Request(InvalidRequest::SamePath(_)))
                ),
                "{path}"
            );
        }
        let request = build(Request::builder("python").code("1").file("main.pyx", ""));
        assert!(check(&runtime, &request).is_ok());
        let request = build(Request::builder("python").file("main.py", ""));
        assert!(check(&runtime, &request).is_ok());
    }

    #[test]
    fn files_that_do_not_fit_the_disk_are_refused() {
        let disk = |kib| Limits::run().with_disk(ByteSize::kib(kib)).unwrap();
        let builder = || Request::builder("python").file("a", vec![0; 65_537]);
        let runtime = unprobed("python");
        let error = check(&runtime, &build(builder().limits(disk(64)))).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the files are 65537 bytes together, over the disk limit of 64K of the run stage"
        );
        assert!(check(&runtime, &build(builder().limits(disk(68)))).is_ok());
        let builder = Request::builder("c").file("a.c", vec![0; 65_537]);
        let error = check(&unprobed("c"), &build(builder.compile_limits(disk(64)))).unwrap_err();
        assert!(error.to_string().ends_with("of the compile stage"), "{error}");
        let many = (0..65).fold(Request::builder("python"), |builder, number| {
            builder.file(number.to_string(), "")
        });
        let error = check(&runtime, &build(many.limits(disk(64)))).unwrap_err();
        assert!(error.to_string().starts_with("65 files are more than the 64"), "{error}");
    }

    #[test]
    fn artefacts_must_leave_room_for_the_files_of_the_run_stage() {
        let limits = Limits::run().with_disk(ByteSize::kib(64)).unwrap();
        let builder = Request::builder("c").file("a.c", vec![b' '; 1024]);
        let plan = compile(&unprobed("c"), &build(builder.limits(limits)), Surroundings::default())
            .unwrap();
        assert_eq!(plan.collect.total, ByteSize::kib(63));
    }

    #[test]
    fn nothing_to_compile_is_told_before_a_compiler_starts() {
        let request = build(Request::builder("c").file("only.h", ""));
        assert_eq!(
            check(&unprobed("c"), &request).unwrap_err().to_string(),
            "there is nothing to compile: c needs a file that ends in .c"
        );
    }

    #[test]
    fn a_reader_moves_into_the_run_stage() {
        let stdin = Stdin::from_reader(&b"typed"[..]);
        let request = build(Request::builder("python").code("").stdin(stdin));
        let plan = run(&unprobed("python"), &request, Arc::default(), Surroundings::default());
        let Stdin::Reader(reader) = plan.stdin else {
            panic!("the reader was lost");
        };
        let mut text = String::new();
        let mut reader = reader.into_inner().unwrap().unwrap();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "typed");
    }
}
