use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io::Read;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::glob::Glob;

use crate::{
    Allowlist, ByteSize, Gate, InputFile, Limits, NetworkPolicy, NetworkReport, Protection, Stage,
    StageFigures, Violation, Volume, WorkspaceOutcome, WorkspacePlan,
};

/// What comes in on standard input.
#[derive(Default)]
pub enum Stdin {
    /// Nothing: end of file at once.
    #[default]
    Empty,
    /// These bytes.
    Bytes(Vec<u8>),
    /// Whatever this reader gives, as it gives it. It can be taken once.
    Reader(Mutex<Option<Box<dyn Read + Send>>>),
}

/// One stage, resolved: plain data that any backend can carry out.
#[derive(Debug)]
pub struct StagePlan {
    /// Which stage this is.
    pub stage: Stage,
    /// Program and arguments. The program is an absolute path inside, or relative to the work
    /// directory.
    pub command: Vec<String>,
    /// The whole environment; nothing of the host's is added.
    pub env: BTreeMap<String, String>,
    /// Files in the work directory at the start.
    pub files: Vec<InputFile>,
    /// What a compile stage left there, beside them.
    pub artefacts: Arc<Artefacts>,
    /// Directory to start in, below the work directory; empty for the work directory itself.
    pub directory: String,
    /// Standard input.
    pub stdin: Stdin,
    /// What it may use.
    pub limits: Limits,
    /// What it may reach.
    pub network: NetworkPolicy,
    /// What that is, where the policy leaves it open.
    pub allow: Option<Arc<Allowlist>>,
    /// A way out to named places, for stages of ours that fetch something.
    pub gate: Option<Gate>,
    /// Host directories shown inside because the request names them.
    pub volumes: Vec<Volume>,
    /// What of the host it needs to see beside the system's own programs: a toolchain, a layer.
    pub trees: Vec<Tree>,
    /// The workspace whose files are in the work directory.
    pub workspace: Option<WorkspacePlan>,
    /// How its runtime can be started before the program is known, if it can.
    pub warm: Option<Arc<WarmPlan>>,
    /// What to bring back afterwards.
    pub collect: CollectRule,
    /// Protections the request can do without.
    pub allow_missing: BTreeSet<Protection>,
    /// How often to sample usage.
    pub usage_interval: Option<Duration>,
}

/// What a compile stage left for the run stage.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Artefacts {
    /// What they were made from and by, in one word, if they may be asked for again: equal words stand for
    /// equal files.
    pub key: Option<String>,
    /// The files.
    pub files: Vec<InputFile>,
}

impl StagePlan {
    /// All files that are in the work directory at the start.
    pub fn all_files(&self) -> impl Iterator<Item = &InputFile> {
        self.files.iter().chain(&self.artefacts.files)
    }
}

impl Artefacts {
    /// What was brought back from a compile stage. The backend brings back plain names only; one that is
    /// not cannot be placed again.
    pub fn new(key: Option<String>, files: Vec<CollectedFile>) -> Self {
        let files = files.into_iter().filter_map(|file| {
            let CollectedFile { path, contents, executable } = file;
            Some(InputFile { path: path.parse().ok()?, contents, executable })
        });
        Self { key, files: files.collect() }
    }
}

/// A runtime that is started before its program is known, and waits for it. It then behaves as the stage's
/// command would: what it is told, and how, stands in docs/recipes.md.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WarmPlan {
    /// For people: whose runtime it is.
    pub name: String,
    /// Program and arguments.
    pub command: Vec<String>,
    /// The environment it is started in.
    pub env: BTreeMap<String, String>,
    /// Files that it needs to start; they are gone when the program comes.
    pub files: Vec<InputFile>,
    /// Whether it calls `fork` when `SANDBOX_WARM` is `fork`, so that it can be started once and copied.
    pub forks: bool,
}

/// What was there of a sandbox when a stage asked for it.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Start {
    /// Nothing: it was built on request.
    #[default]
    Cold,
    /// Its walls.
    Prepared,
    /// Its walls, and the runtime inside.
    Warm,
}

/// A directory or file of the host that is shown read-only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree {
    /// Where it is on the host.
    pub host: PathBuf,
    /// Where it is shown inside: an absolute path.
    pub inside: PathBuf,
    /// Whether the program may write there. What it writes is its own, counts against its disk limit
    /// and goes away with it: the host's files stay as they are.
    pub copy_on_write: bool,
}

/// Which files to bring back, and how much of them at most.
#[derive(Clone, Debug)]
pub struct CollectRule {
    /// Files that one of these names.
    pub globs: Vec<Glob>,
    /// All of them together.
    pub total: ByteSize,
    /// How many at most.
    pub count: usize,
}

/// A file that was brought back.
#[derive(Clone, PartialEq, Eq)]
pub struct CollectedFile {
    /// Where it was, below the work directory.
    pub path: String,
    /// Its bytes.
    pub contents: Vec<u8>,
    /// Whether its owner could execute it.
    pub executable: bool,
}

/// A name that fitted a pattern and was not brought back.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct SkippedFile {
    /// Its path, made printable.
    pub path: String,
    /// Why.
    pub reason: String,
}

/// One of the two streams a program writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StreamKind {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// Which clock ran out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TimeKind {
    /// The clock on the wall.
    Wall,
    /// The time spent on CPUs.
    Cpu,
}

/// How a stage ended. None of these is an error: each is the result of a correct run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ending {
    /// By itself, with this code.
    Exited(i32),
    /// By a signal that was not ours.
    Signaled(i32),
    /// We ended it when this clock ran out.
    TimedOut(TimeKind),
    /// The kernel ended it for memory.
    OutOfMemory,
    /// We ended it for printing too much.
    TooMuchOutput,
    /// It left more in collected files than allowed.
    TooManyFiles,
    /// It left what its workspace cannot hold.
    TooMuchForWorkspace,
    /// The client asked for its end.
    Cancelled,
}

/// What a backend tells of one stage.
#[derive(Debug)]
pub struct StageOutcome {
    /// How it ended.
    pub ending: Ending,
    /// What it used.
    pub figures: StageFigures,
    /// The beginning of its standard output, up to the limit.
    pub stdout: Vec<u8>,
    /// The beginning of its standard error, up to the limit.
    pub stderr: Vec<u8>,
    /// Both as they were written.
    pub output: Vec<u8>,
    /// Whether standard output went on after what was kept.
    pub stdout_truncated: bool,
    /// Whether standard error went on after what was kept.
    pub stderr_truncated: bool,
    /// Files brought back.
    pub files: Vec<CollectedFile>,
    /// Files left where they were.
    pub skipped: Vec<SkippedFile>,
    /// What became of its workspace, if it had one.
    pub workspace: Option<WorkspaceOutcome>,
    /// What really stood.
    pub enforced: Vec<Protection>,
    /// System calls that were denied.
    pub violations: Vec<Violation>,
    /// What it tried to reach, if it could reach something.
    pub network: Option<NetworkReport>,
    /// What the plan's gate would not or could not reach, a sentence for each.
    pub turned_away: Vec<String>,
    /// What was there before.
    pub start: Start,
    /// Our own time before the program started.
    pub prepare_time: Duration,
    /// Our own time after it ended.
    pub collect_time: Duration,
}

impl CollectRule {
    /// Nothing is brought back.
    pub fn nothing() -> Self {
        Self { globs: Vec::new(), total: ByteSize::bytes(0), count: 0 }
    }

    /// Whether a file at this path is to be brought back.
    pub fn wants(&self, path: &str) -> bool {
        self.globs.iter().any(|glob| glob.names(path))
    }
}

impl fmt::Debug for Stdin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("Empty"),
            Self::Bytes(bytes) => write!(f, "Bytes({} bytes)", bytes.len()),
            Self::Reader(_) => f.write_str("Reader"),
        }
    }
}

impl fmt::Debug for CollectedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({} bytes)", self.path, self.contents.len())
    }
}

impl From<Vec<u8>> for Stdin {
    fn from(bytes: Vec<u8>) -> Self {
        if bytes.is_empty() { Self::Empty } else { Self::Bytes(bytes) }
    }
}

impl From<&str> for Stdin {
    fn from(text: &str) -> Self {
        text.as_bytes().to_vec().into()
    }
}

impl Stdin {
    /// Input that is read while the program runs.
    pub fn from_reader(reader: impl Read + Send + 'static) -> Self {
        Self::Reader(Mutex::new(Some(Box::new(reader))))
    }
}
