//! The backends under test, for tests that hold for every backend.

use std::path::Path;

use sandbox::{
    ExecuteError, Isolation, OciRuntime, Report, RequestBuilder, ResolveError, Sandbox,
    SandboxBuilder,
};

use crate::skip::skip;

/// A backend that has to pass the conformance suite.
pub struct BackendUnderTest {
    /// Its name in messages of failing tests.
    pub name: &'static str,
    /// Features that it lacks, and why; printed in docs/backends.md.
    pub lacks: &'static [(Feature, &'static str)],
    /// Differences from the native backend, and why.
    pub differs: &'static [(&'static str, &'static str)],
    /// Attacks with another outcome than on the native backend, and why that is safe.
    pub explained: &'static [(&'static str, &'static str)],
    /// Why it cannot be tested on this host.
    pub absent: fn() -> Option<&'static str>,
    /// Configures a sandbox to use it.
    pub choose: fn(SandboxBuilder) -> SandboxBuilder,
}

/// A feature that a test needs and that some backends lack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feature {
    /// Directories of the host.
    Volumes,
    /// Directories that outlive an execution.
    Workspaces,
    /// A network with an allow-list.
    Allowlist,
    /// Output of both streams is reported in write order.
    OutputOrder,
    /// System calls that the filter denied are counted by name.
    NamedDenials,
    /// The peak number of processes.
    ProcessFigures,
    /// How many bytes were read and written.
    MovedBytes,
    /// A program's own figures of CPU time are those of the host.
    CpuClock,
    /// A number of files that may be made.
    FileCount,
    /// Without a network there is no loopback interface either.
    NoLoopback,
    /// Terminals are bounded, and a program can open its own by name.
    Terminals,
    /// The root, `/dev` and `/proc` have the same contents as on the native backend.
    LinuxWorld,
    /// Processes of a program are processes of the host, with the same names.
    HostProcesses,
}

impl Feature {
    /// For the documentation.
    pub fn name(self) -> &'static str {
        match self {
            Self::Volumes => "volumes",
            Self::Workspaces => "workspaces",
            Self::Allowlist => "network with an allow-list",
            Self::OutputOrder => "order of `stdout` and `stderr` in `output` and events",
            Self::NamedDenials => "denied calls in `violations`",
            Self::ProcessFigures => "`processes_peak` (it is 1)",
            Self::MovedBytes => "bytes read and written (they are 0)",
            Self::CpuClock => "CPU time as the program itself measures it",
            Self::FileCount => "bound on the number of files",
            Self::NoLoopback => "way to be without a loopback interface",
            Self::Terminals => "bound on terminals, and no `/dev/tty` to open",
            Self::LinuxWorld => {
                "`/dev` and `/proc` as small as in the native backend, nor a root without `/sys`"
            }
            Self::HostProcesses => "processes of the program on the host",
        }
    }
}

/// All backends. Add a new one here.
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
    BackendUnderTest {
        name: "gvisor",
        lacks: GVISOR_LACKS,
        differs: GVISOR_DIFFERS,
        explained: GVISOR_ATTACKS,
        absent: || None,
        choose: |builder| builder.isolation(Isolation::Gvisor),
    },
];

/// The same backends with another runtime. A few tests run under each; all do under the variant that
/// `SANDBOX_RUN_ONLY_BACKEND` names.
pub const VARIANTS: &[BackendUnderTest] = &[
    BackendUnderTest {
        name: "crun",
        lacks: RUNC_LACKS,
        differs: RUNC_DIFFERS,
        explained: RUNC_ATTACKS,
        absent: crun_absent,
        choose: |builder| builder.isolation(Isolation::Runc).oci_runtime(OciRuntime::Crun),
    },
    BackendUnderTest {
        name: "docker-runsc",
        lacks: GVISOR_LACKS,
        differs: GVISOR_DIFFERS,
        explained: GVISOR_ATTACKS,
        absent: engine_absent,
        choose: |builder| docker(builder).docker_runtime("runsc"),
    },
];

/// The backend of this name, or the variant.
pub fn named(name: &str) -> &'static BackendUnderTest {
    let mut all = BACKENDS.iter().chain(VARIANTS);
    all.find(|backend| backend.name == name).expect("there is such a backend")
}

/// The only backend to test, if one is selected.
fn only() -> Option<String> {
    #[expect(clippy::disallowed_methods, reason = "whoever runs the tests says so this way")]
    std::env::var("SANDBOX_RUN_ONLY_BACKEND").ok()
}

/// The variant that is to be tested in place of all backends, if there is.
fn only_variant() -> Option<&'static BackendUnderTest> {
    let only = only()?;
    VARIANTS.iter().find(|variant| variant.name == only)
}

impl BackendUnderTest {
    /// Whether it does not have this.
    pub fn lacks(&self, feature: Feature) -> bool {
        self.lacks.iter().any(|(lacking, _)| *lacking == feature)
    }

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
    ("uptime", "there is no time namespace: the clock since the start is the host's"),
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
    ("uptime", "there is no time namespace: the clock since the start is the host's"),
    (
        "fill-three-places",
        "the three places are a file system each; the memory limit bounds their sum",
    ),
];

const RUNC_DIFFERS: &[(&str, &str)] = &[
    (
        "inotify instances are counted for root too, and are 128 for all of them on most hosts",
        "the user namespaces that the runtime makes belong to root",
    ),
    ("time starts with the machine", "runc 1.1 makes no time namespaces"),
    (
        "three disks instead of one",
        "`/work`, `/tmp` and `/dev/shm` are of the size of the disk limit each",
    ),
    ("`/proc/self/mountinfo` tells where the root is on the host", "it is a directory there"),
    ("prepared, never warm", "containers are started ahead, runtimes in them are not"),
];

const RUNC_LACKS: &[(Feature, &str)] = &[(Feature::Allowlist, "not built yet")];

const DOCKER_LACKS: &[(Feature, &str)] = &[(Feature::Allowlist, "not built yet")];

const DOCKER_DIFFERS: &[(&str, &str)] = &[
    (
        "the program's user has another number than 1000, of its own",
        "the Engine maps no ids of a container's own; nobody else on the host has that number",
    ),
    ("time starts with the machine", "the Engine makes no time namespaces"),
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

const GVISOR_LACKS: &[(Feature, &str)] = &[
    (Feature::Volumes, "its kernel sees no mounts that come after its start"),
    (Feature::Workspaces, "the same: a workspace is such a mount"),
    (Feature::Allowlist, "not built yet"),
    (Feature::OutputOrder, "its pipes do not keep writes apart; each stream is in order"),
    (
        Feature::NamedDenials,
        "its kernel has no listeners of filters; the calls are denied all the same",
    ),
    (
        Feature::ProcessFigures,
        "the host sees threads of its kernel instead; their limit holds inside",
    ),
    (Feature::MovedBytes, "its kernel does not tell what children have moved"),
    (
        Feature::CpuClock,
        "its kernel counts waiting for a processor; the report has what the host counted",
    ),
    (Feature::FileCount, "its file systems have none; the memory limit bounds them"),
    (Feature::NoLoopback, "its kernel always has one, of the program's own"),
    (Feature::Terminals, "its kernel has neither; the limit of open files bounds them"),
    (
        Feature::LinuxWorld,
        "they are its kernel's; of the host they tell the processor and the size of the memory",
    ),
    (Feature::HostProcesses, "they are processes of its kernel"),
];

const GVISOR_DIFFERS: &[(&str, &str)] = &[
    (
        "16 MiB more than the memory limit, and 3 MiB of it for each process",
        "its kernel's own memory is counted with the program's",
    ),
    ("no rules of Landlock", "its kernel has none"),
    (
        "`ls -l` complains of symbolic links in `/usr`",
        "its kernel answers a question for their attributes with a wrong error",
    ),
    (
        "three disks instead of one",
        "`/work`, `/tmp` and `/dev/shm` are of the size of the disk limit each",
    ),
    ("prepared, never warm", "containers are started ahead, runtimes in them are not"),
];

const GVISOR_ATTACKS: &[(&str, &str)] = &[
    (
        "keep-capabilities",
        "as with runc: there are no capabilities to keep, and no way to new ones",
    ),
    ("fill-three-places", "as with runc: the memory limit bounds their sum"),
    ("record-locks", "locks are its kernel's memory, which the memory limit bounds"),
    ("open-directories", "they are its kernel's memory, which the memory limit bounds"),
    ("local-connections", "they are its kernel's memory, which the memory limit bounds"),
    ("message-queues", "they are its kernel's memory, which the memory limit bounds"),
    ("own-filters", "filters are its kernel's memory, which the memory limit bounds"),
    ("huge-pages", "its kernel has none; what asks for them gets ordinary pages"),
    ("fill-inodes", "files without content are its kernel's memory, which the memory limit bounds"),
    ("parked-descriptors", "they are open in its kernel only, whose memory is bounded"),
    (
        "tcp-buffers",
        "they are its kernel's memory, which the memory limit bounds: it ends the program",
    ),
    (
        "devices",
        "`/dev/fuse` and `/dev/net/tun` are its kernel's; using them takes a mount or a capability, and there are none",
    ),
    ("home-directories", "`/sys` is its kernel's, and has nothing of the host"),
    ("kernel-facts", "they are its kernel's; the size of the memory is the host's"),
    ("uptime", "its kernel started with the container: it is the container's"),
    (
        "same-ids",
        "the map is its kernel's; on the host all of it is one user that nothing else belongs to",
    ),
    (
        "init-secrets",
        "its kernel shows the agent's environment and addresses to everybody, which hold nothing; its memory and \
         descriptors stay closed",
    ),
    (
        "cpu-share",
        "the program believes its kernel's clock of CPU time; the host's cgroup has the quota",
    ),
    ("spin-many", "the same clock: the host counted less than the limit"),
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

/// Why crun cannot be tested.
fn crun_absent() -> Option<&'static str> {
    (!Path::new("/usr/bin/crun").exists()).then_some("crun is not installed")
}

/// Why there is none.
pub fn engine_absent() -> Option<&'static str> {
    let reason = "DOCKER_HOST is not set: eval it from 'scripts/engine start DIRECTORY'";
    engine().is_none().then_some(reason)
}

/// Whether a backend does not have something.
pub fn lacks(isolation: Isolation, feature: Feature) -> bool {
    let name = isolation.to_string();
    let backend = only_variant().or_else(|| BACKENDS.iter().find(|backend| backend.name == name));
    backend.is_some_and(|backend| backend.lacks.iter().any(|(lacked, _)| *lacked == feature))
}

/// Whether the backend that made a report has something.
pub fn has(report: &Report, feature: Feature) -> bool {
    !lacks(report.isolation, feature)
}

/// Whether a test runs under the backend or variant of this name: it is here, is not excluded by
/// `SANDBOX_RUN_ONLY_BACKEND`, and this user can use it.
pub fn is_selected(name: &str) -> bool {
    let is_allowed = rustix::process::geteuid().is_root() || name == "native";
    is_allowed && only().is_none_or(|only| only == name) && named(name).is_here()
}

/// Runs a test under each backend, with a sandbox of its own that is taken down afterwards.
pub fn with_each_backend(test: impl Fn(&Sandbox)) {
    with_each_backend_that_has(&[], test);
}

/// The same for one of very many tests: under the native backend, one in so many under one of the others too, which
/// is another one for another name, and each under all if `SANDBOX_RUN_ALL_BACKENDS` is set.
pub fn with_native_and_another(name: &str, one_in: usize, test: impl Fn(&Sandbox)) {
    let (native, others) = BACKENDS.split_first().expect("there are backends");
    let sum: usize = name.bytes().map(usize::from).sum();
    let turn = sum % (others.len() * one_in);
    let turns = others.iter().enumerate().filter(|(number, _)| is_all_asked() || *number == turn);
    let backends = std::iter::once(native).chain(turns.map(|(_, backend)| backend));
    with_some(backends, &[], |builder| builder, test);
}

/// The same where only the native backend is worth the time, unless `SANDBOX_RUN_ALL_BACKENDS` is set.
pub fn with_each_backend_if_asked(test: impl Fn(&Sandbox)) {
    let backends = if is_all_asked() { BACKENDS } else { &BACKENDS[..1] };
    with_some(backends, &[], |builder| builder, test);
}

fn is_all_asked() -> bool {
    #[expect(clippy::disallowed_methods, reason = "whoever runs the tests says so this way")]
    let asked = std::env::var_os("SANDBOX_RUN_ALL_BACKENDS");
    asked.is_some()
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
    with_some(BACKENDS.iter().chain(only_variant()), needed, set_up, test);
}

/// Under one variant.
pub fn with_variant(name: &str, test: impl Fn(&Sandbox)) {
    with_some([named(name)], &[], |builder| builder, test);
}

/// Under the backend of this name, set up in some way.
pub fn with_backend_set_up(
    name: &str,
    set_up: impl Fn(SandboxBuilder) -> SandboxBuilder,
    test: impl Fn(&Sandbox),
) {
    with_some([named(name)], &[], set_up, test);
}

/// Under the native backend only, set up in some way.
pub fn with_native_set_up(
    set_up: impl Fn(SandboxBuilder) -> SandboxBuilder,
    test: impl Fn(&Sandbox),
) {
    with_some(&BACKENDS[..1], &[], set_up, test);
}

fn with_some(
    backends: impl IntoIterator<Item = &'static BackendUnderTest>,
    needed: &[Feature],
    set_up: impl Fn(SandboxBuilder) -> SandboxBuilder,
    test: impl Fn(&Sandbox),
) {
    let only = only();
    // Containers need root: an ordinary user has the native backend only.
    let is_root = rustix::process::geteuid().is_root();
    let is_wanted = |name: &str| {
        only.as_deref().is_none_or(|only| only == name) && (is_root || name == "native")
    };
    for backend in backends.into_iter().filter(|backend| is_wanted(backend.name)) {
        if !backend.is_here() || backend.lacks.iter().any(|(feature, _)| needed.contains(feature)) {
            continue;
        }
        // What is tested must happen, also where it happened before.
        let mut builder = (backend.choose)(Sandbox::builder()).without_compile_cache();
        if backend.name != "native" {
            // Spare containers cost more than they save, except in tests about them.
            builder = builder.spare_slots(0);
        }
        let sandbox = set_up(builder).build();
        let sandbox = sandbox.unwrap_or_else(|error| {
            panic!("{} cannot be started: {}", backend.name, sandbox::with_causes(&error))
        });
        test(&sandbox);
    }
}

/// Executes a request that must be accepted, and prints the report for a failing test. There
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
