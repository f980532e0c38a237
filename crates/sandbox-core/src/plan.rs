use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::{
    Allowlist, CollectRule, CollectedFile, EgressProxy, InputFile, Limits, NetworkPolicy,
    NetworkReport, Protection, SkippedFile, Stage, StageUsage, Start, Stdin, Violation, Volume,
    WorkspaceOutcome, WorkspacePlan,
};

/// What surrounds the processes of a sandbox, completely resolved: plain data that any backend can
/// carry out.
#[derive(Debug)]
pub struct SandboxSpec {
    /// Whose sandbox it is, if the process serves several owners: they get CPU time fairly.
    pub owner: Option<String>,
    /// Resource limits.
    pub limits: Limits,
    /// Files to place in the work directory before the first process starts.
    pub files: Vec<InputFile>,
    /// Output of the compile stage, placed beside the files.
    pub artefacts: Arc<Artefacts>,
    /// Network policy.
    pub network: NetworkPolicy,
    /// The allow-list, if the policy is `allowlist`.
    pub allow: Option<Arc<Allowlist>>,
    /// A proxy to the listed hosts, for internal stages that download packages.
    pub egress_proxy: Option<EgressProxy>,
    /// Host directories that the request mounts.
    pub volumes: Vec<Volume>,
    /// Host directories and files that are mounted besides the system's own programs: a toolchain,
    /// a layer.
    pub trees: Vec<Tree>,
    /// The workspace that is the work directory.
    pub workspace: Option<WorkspacePlan>,
    /// How the runtime can be started before the program is known, if it can.
    pub warm: Option<Arc<WarmPlan>>,
    /// Protections that the request allows to be missing.
    pub allow_missing: BTreeSet<Protection>,
}

impl SandboxSpec {
    /// Creates a specification with these limits, without files, network and mounts.
    pub fn new(limits: Limits) -> Self {
        Self {
            owner: None,
            limits,
            files: Vec::new(),
            artefacts: Arc::default(),
            network: NetworkPolicy::None,
            allow: None,
            egress_proxy: None,
            volumes: Vec::new(),
            trees: Vec::new(),
            workspace: None,
            warm: None,
            allow_missing: BTreeSet::new(),
        }
    }

    /// All files to place in the work directory before the start.
    pub fn all_files(&self) -> impl Iterator<Item = &InputFile> {
        self.files.iter().chain(&self.artefacts.files)
    }
}

/// A process to start in a sandbox.
#[derive(Debug)]
pub struct ProcessSpec {
    /// Program and arguments. The program is an absolute path inside, or relative to the work
    /// directory.
    pub command: Vec<String>,
    /// The whole environment; no variable of the host is added.
    pub env: BTreeMap<String, String>,
    /// Directory to start in, relative to the work directory; empty for the work directory itself.
    pub directory: String,
    /// Standard input.
    pub stdin: Stdin,
}

impl ProcessSpec {
    /// Creates a specification that starts in the work directory with empty standard input.
    pub fn new(command: Vec<String>, env: BTreeMap<String, String>) -> Self {
        Self { command, env, directory: String::new(), stdin: Stdin::Empty }
    }
}

/// One stage: a sandbox, and the one process that runs in it.
#[derive(Debug)]
pub struct StagePlan {
    /// Which stage this is.
    pub stage: Stage,
    /// The sandbox.
    pub sandbox: SandboxSpec,
    /// The process.
    pub process: ProcessSpec,
    /// Which files to collect afterwards.
    pub collect: CollectRule,
    /// How often to sample resource usage.
    pub usage_interval: Option<Duration>,
}

/// Output of a compile stage, for the run stage.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Artefacts {
    /// Key of the inputs and the compiler, if the same artefacts may be requested again: equal keys
    /// mean equal files.
    pub key: Option<String>,
    /// The files.
    pub files: Vec<InputFile>,
}

impl StagePlan {
    /// Creates a stage that collects no files.
    pub fn new(stage: Stage, sandbox: SandboxSpec, process: ProcessSpec) -> Self {
        Self { stage, sandbox, process, collect: CollectRule::nothing(), usage_interval: None }
    }
}

impl Artefacts {
    /// Creates artefacts from the files that a compile stage left. Backends return only valid
    /// relative paths; others are dropped.
    pub fn new(key: Option<String>, files: Vec<CollectedFile>) -> Self {
        let files = files.into_iter().filter_map(|file| {
            let CollectedFile { path, contents, executable } = file;
            Some(InputFile { path: path.parse().ok()?, contents, executable })
        });
        Self { key, files: files.collect() }
    }
}

/// A runtime that is started before its program is known, and waits for it. It then behaves like
/// the stage's command. docs/recipes.md specifies the protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WarmPlan {
    /// The language, for statistics.
    pub name: String,
    /// Program and arguments.
    pub command: Vec<String>,
    /// The environment of the runtime.
    pub env: BTreeMap<String, String>,
    /// Files that the runtime needs to start. They are removed before the program's files are
    /// placed.
    pub files: Vec<InputFile>,
    /// Whether the runtime calls `fork` if `SANDBOX_WARM` is `fork`, so that it can serve as a
    /// zygote.
    pub forks: bool,
}

/// A host directory or file that is mounted read-only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree {
    /// The path on the host.
    pub host: PathBuf,
    /// The absolute path inside the sandbox.
    pub inside: PathBuf,
    /// Whether the program may write there. Writes go to a copy that counts against the disk limit
    /// and is discarded: the host's files do not change.
    pub copy_on_write: bool,
}

/// Which time limit was exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TimeKind {
    /// Wall-clock time.
    Wall,
    /// CPU time.
    Cpu,
}

/// How a stage ended. None of these is an error: each is the outcome of a correct run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ending {
    /// The program exited with this code.
    Exited(i32),
    /// A signal that the supervisor did not send killed the program.
    Signaled(i32),
    /// The supervisor ended it because this time limit was exceeded.
    TimedOut(TimeKind),
    /// The kernel killed it for exceeding the memory limit.
    OutOfMemory,
    /// The supervisor ended it for exceeding the output limit.
    TooMuchOutput,
    /// The files to collect exceed their limit.
    TooManyFiles,
    /// The files in the workspace exceed its quota.
    TooMuchForWorkspace,
    /// The client cancelled it.
    Cancelled,
}

/// The outcome of one stage.
#[derive(Debug)]
pub struct StageOutcome {
    /// How it ended.
    pub ending: Ending,
    /// Resource usage.
    pub usage: StageUsage,
    /// The beginning of its standard output, up to the limit.
    pub stdout: Vec<u8>,
    /// The beginning of its standard error, up to the limit.
    pub stderr: Vec<u8>,
    /// Both streams in the order in which they were written.
    pub output: Vec<u8>,
    /// Whether standard output was truncated.
    pub stdout_truncated: bool,
    /// Whether standard error was truncated.
    pub stderr_truncated: bool,
    /// Collected files.
    pub files: Vec<CollectedFile>,
    /// Files that were selected and not collected.
    pub skipped: Vec<SkippedFile>,
    /// What happened to the workspace, if there was one.
    pub workspace: Option<WorkspaceOutcome>,
    /// Protections that were in force.
    pub enforced: Vec<Protection>,
    /// System calls that were denied.
    pub violations: Vec<Violation>,
    /// Connections and DNS queries, if the network policy allows any.
    pub network: Option<NetworkReport>,
    /// Requests that the egress proxy refused or could not serve, one sentence for each.
    pub proxy_refusals: Vec<String>,
    /// How much of the sandbox existed before the request.
    pub start: Start,
    /// Overhead before the program started.
    pub prepare_time: Duration,
    /// Overhead after the program ended.
    pub collect_time: Duration,
}

impl StageOutcome {
    /// The outcome of a stage whose program did not start: only an ending.
    pub fn new(ending: Ending) -> Self {
        Self {
            ending,
            usage: StageUsage::default(),
            stdout: Vec::new(),
            stderr: Vec::new(),
            output: Vec::new(),
            stdout_truncated: false,
            stderr_truncated: false,
            files: Vec::new(),
            skipped: Vec::new(),
            workspace: None,
            enforced: Vec::new(),
            violations: Vec::new(),
            network: None,
            proxy_refusals: Vec::new(),
            start: Start::Cold,
            prepare_time: Duration::ZERO,
            collect_time: Duration::ZERO,
        }
    }
}
