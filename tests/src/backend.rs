//! What builds the walls in a test that holds for every builder of walls.

use sandbox::{
    ExecuteError, Isolation, Report, RequestBuilder, ResolveError, Sandbox, SandboxBuilder,
};

use crate::skip::skip;

/// A backend that has to pass the conformance suite.
pub struct BackendUnderTest {
    /// Its name in the words of a failing test.
    pub name: &'static str,
    /// What it does not have, and why, for people who read of it.
    pub lacks: &'static [(Feature, &'static str)],
    /// What is otherwise than in the native walls, and why.
    pub differs: &'static [(&'static str, &'static str)],
    /// Attacks that end otherwise than behind the native walls, and why that is no hole.
    pub explained: &'static [(&'static str, &'static str)],
    /// Why it cannot be tested here, if so.
    pub absent: fn() -> Option<&'static str>,
    /// Has a sandbox use it.
    pub choose: fn(SandboxBuilder) -> SandboxBuilder,
}

/// What a test may need that not every backend has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feature {
    /// Directories of the host.
    Volumes,
    /// Directories that outlive an execution.
    Workspaces,
    /// Toolchains that write into a directory of the host's, as a copy of their own.
    CopiedTrees,
}

impl Feature {
    /// For the documentation.
    pub fn name(self) -> &'static str {
        match self {
            Self::Volumes => "volumes",
            Self::Workspaces => "workspaces",
            Self::CopiedTrees => "Go (a toolchain that writes into a prepared cache)",
        }
    }
}

/// What a test of a language needs.
pub fn needs_of(language: &str) -> &'static [Feature] {
    // Its compiler writes into a cache that was filled before.
    if language == "go" { &[Feature::CopiedTrees] } else { &[] }
}

/// Every backend there is. Another one is plugged in by a line here.
pub const BACKENDS: &[BackendUnderTest] = &[
    BackendUnderTest {
        name: "native",
        lacks: &[],
        differs: &[],
        explained: &[],
        absent: || None,
        choose: |builder| builder,
    },
    BackendUnderTest {
        name: "docker",
        lacks: DOCKER_LACKS,
        differs: DOCKER_DIFFERS,
        explained: DOCKER_ATTACKS,
        absent: engine_absent,
        choose: docker,
    },
    BackendUnderTest {
        name: "runc",
        lacks: RUNC_LACKS,
        differs: RUNC_DIFFERS,
        explained: RUNC_ATTACKS,
        absent: || None,
        choose: |builder| builder.isolation(Isolation::Runc),
    },
];

/// The backend of this name.
pub fn named(name: &str) -> &'static BackendUnderTest {
    BACKENDS.iter().find(|backend| backend.name == name).expect("there is such a backend")
}

impl BackendUnderTest {
    /// Whether it can be tested here. If not, that is counted.
    pub fn is_here(&self) -> bool {
        let absent = (self.absent)();
        if let Some(reason) = absent {
            skip(self.name, reason);
        }
        absent.is_none()
    }
}

const DOCKER_ATTACKS: &[(&str, &str)] = &[
    (
        "keep-capabilities",
        "the Engine sets no secure bits; there are no capabilities to keep, and no way to new ones",
    ),
    (
        "cgroup-path",
        "the program is in a cgroup of ours, whose path from the container's tells our process number",
    ),
    ("same-ids", "the Engine maps none; nobody else on the host has the program's number"),
    (
        "fill-three-places",
        "the three places are a file system each; the memory limit bounds their sum",
    ),
];

const RUNC_ATTACKS: &[(&str, &str)] = &[
    (
        "keep-capabilities",
        "the runtime description has no secure bits; there are no capabilities to keep, and no way to new ones",
    ),
    ("cgroup-path", "it is '/../program' in every container, and tells nothing of the host"),
    (
        "fill-three-places",
        "the three places are a file system each; the memory limit bounds their sum",
    ),
];

const RUNC_DIFFERS: &[(&str, &str)] = &[
    ("time starts with the machine", "runc 1.1 makes no time namespaces"),
    (
        "no rules of Landlock",
        "the agent sets none; the root holds nothing that they would keep away",
    ),
    (
        "three disks instead of one",
        "`/work`, `/tmp` and `/dev/shm` are of the size of the disk limit each",
    ),
    ("`/proc/self/mountinfo` tells where the root is on the host", "it is a directory there"),
    ("always cold", "no containers are started ahead yet"),
];

const RUNC_LACKS: &[(Feature, &str)] = &[
    (Feature::Volumes, "not built yet: the runtime cannot map their owners"),
    (Feature::Workspaces, "not built yet"),
    (Feature::CopiedTrees, "not built yet: the runtime cannot map their owners"),
];

const DOCKER_LACKS: &[(Feature, &str)] = &[
    (Feature::Volumes, "not built yet: the Engine cannot map their owners"),
    (Feature::Workspaces, "not built yet"),
    (Feature::CopiedTrees, "not built yet: the Engine cannot map their owners"),
];

const DOCKER_DIFFERS: &[(&str, &str)] = &[
    (
        "the program's user has another number than 1000, of its own",
        "the Engine maps no ids of a container's own; nobody else on the host has that number",
    ),
    ("time starts with the machine", "the Engine makes no time namespaces"),
    (
        "no rules of Landlock",
        "the agent sets none; the root holds nothing that they would keep away",
    ),
    (
        "three disks instead of one",
        "`/work`, `/tmp` and `/dev/shm` are of the size of the disk limit each",
    ),
    ("`/sys`, `/proc/sys` and `/dev/mqueue` are there, empty", "the Engine makes them"),
    (
        "`/proc/self/mountinfo` tells where the Engine keeps its containers",
        "it shows where things are mounted from",
    ),
    ("prepared, never warm", "containers are started ahead, runtimes in them are not"),
];

fn docker(builder: SandboxBuilder) -> SandboxBuilder {
    let host = engine().expect("tests of docker are left out where there is none");
    builder.isolation(Isolation::Docker).docker_host(host)
}

/// The Docker Engine that the tests may use.
#[expect(clippy::disallowed_methods, reason = "whoever runs the tests says so this way")]
pub fn engine() -> Option<String> {
    std::env::var("DOCKER_HOST").ok()
}

/// Why there is none.
pub fn engine_absent() -> Option<&'static str> {
    let reason = "DOCKER_HOST is not set: eval it from 'scripts/engine start DIRECTORY'";
    engine().is_none().then_some(reason)
}

/// Runs a test under each backend, with a sandbox of its own that is taken down afterwards.
pub fn with_each_backend(test: impl Fn(&Sandbox)) {
    with_each_backend_that_has(&[], test);
}

/// The same for one of very many tests: under the native backend, and under each if `SANDBOX_RUN_ALL_BACKENDS` is set.
pub fn with_each_backend_if_asked(needed: &[Feature], test: impl Fn(&Sandbox)) {
    #[expect(clippy::disallowed_methods, reason = "whoever runs the tests says so this way")]
    let is_asked = std::env::var_os("SANDBOX_RUN_ALL_BACKENDS").is_some();
    let backends = if is_asked { BACKENDS } else { &BACKENDS[..1] };
    with_some(backends, needed, |builder| builder, test);
}

/// The same under each backend that has what the test needs.
pub fn with_each_backend_that_has(needed: &[Feature], test: impl Fn(&Sandbox)) {
    with_each_backend_set_up(needed, |builder| builder, test);
}

/// The same with a sandbox that is set up in some other way.
pub fn with_each_backend_set_up(
    needed: &[Feature],
    set_up: impl Fn(SandboxBuilder) -> SandboxBuilder,
    test: impl Fn(&Sandbox),
) {
    with_some(BACKENDS, needed, set_up, test);
}

/// Under the native backend only, set up in some way.
pub fn with_native_set_up(
    set_up: impl Fn(SandboxBuilder) -> SandboxBuilder,
    test: impl Fn(&Sandbox),
) {
    with_some(&BACKENDS[..1], &[], set_up, test);
}

fn with_some(
    backends: &[BackendUnderTest],
    needed: &[Feature],
    set_up: impl Fn(SandboxBuilder) -> SandboxBuilder,
    test: impl Fn(&Sandbox),
) {
    #[expect(clippy::disallowed_methods, reason = "whoever runs the tests says so this way")]
    let only = std::env::var("SANDBOX_RUN_ONLY_BACKEND").ok();
    let is_wanted = |name: &str| only.as_deref().is_none_or(|only| only == name);
    for backend in backends.iter().filter(|backend| is_wanted(backend.name)) {
        if !backend.is_here() || backend.lacks.iter().any(|(feature, _)| needed.contains(feature)) {
            continue;
        }
        // What is tested must happen, also where it happened before.
        let builder = (backend.choose)(Sandbox::builder()).without_compile_cache();
        let sandbox = set_up(builder).build();
        let sandbox = sandbox.unwrap_or_else(|error| {
            panic!("{} cannot be started: {}", backend.name, sandbox::with_causes(&error))
        });
        test(&sandbox);
    }
}

/// Executes a request that has to be taken, and prints the report for whoever reads a failure. There
/// is none if the language's toolchain is not installed, which counts as a skip.
pub fn execute(name: &str, sandbox: &Sandbox, request: RequestBuilder) -> Option<Report> {
    let request = request.build().expect("the request is a valid one");
    match sandbox.execute(request) {
        Ok(report) => {
            show(&report);
            Some(report)
        }
        Err(ExecuteError::Language(error @ ResolveError::ToolchainMissing { .. })) => {
            skip(name, &error.to_string());
            None
        }
        Err(error) => panic!("the request was refused: {}", sandbox::with_causes(&error)),
    }
}

/// Prints a report; the test harness keeps it until the test fails.
#[expect(clippy::print_stdout, reason = "shown only when a test fails")]
pub fn show(report: &Report) {
    let mut json = serde_json::to_value(report).expect("a report can be written as JSON");
    for stream in ["stdout", "stderr", "output", "stdout_base64", "stderr_base64"] {
        let Some(text) = json[stream].as_str() else {
            continue;
        };
        if text.len() > 2000 {
            let start: String = text.chars().take(200).collect();
            json[stream] = format!("{start}… ({} bytes)", text.len()).into();
        }
    }
    println!("{json:#}");
}
