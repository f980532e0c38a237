mod builder;
mod language;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::glob::{Glob, InvalidGlob};
use crate::{
    Allowlist, EnvironmentName, ExecutionId, InvalidEnvironmentName, InvalidPackage, InvalidPath,
    InvalidWorkspace, Limits, NetworkPolicy, PackageSpec, Protection, RelativePath, Snippet, Stdin,
    Volume, WorkspaceChoice,
};

pub use builder::RequestBuilder;
pub use language::LanguageChoice;

/// A file that is there when the program starts.
#[derive(Clone, PartialEq, Eq)]
pub struct InputFile {
    /// Where, below the work directory.
    pub path: RelativePath,
    /// Its bytes.
    pub contents: Vec<u8>,
    /// Whether it can be executed.
    pub executable: bool,
}

/// How a request came to its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acceptance {
    /// When it was accepted.
    pub at: DateTime<Utc>,
    /// How long it waited since.
    pub waited: Duration,
}

/// One piece of work, checked.
#[derive(Debug)]
pub struct Request {
    pub(crate) id: ExecutionId,
    pub(crate) language: LanguageChoice,
    pub(crate) code: Option<String>,
    pub(crate) files: Vec<InputFile>,
    pub(crate) stdin: Stdin,
    pub(crate) args: Vec<String>,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) run_limits: Limits,
    pub(crate) compile_limits: Limits,
    pub(crate) network: NetworkPolicy,
    pub(crate) allow: Option<Arc<Allowlist>>,
    pub(crate) collect: Vec<Glob>,
    pub(crate) volumes: Vec<Volume>,
    pub(crate) workdir: Option<RelativePath>,
    pub(crate) allow_missing: BTreeSet<Protection>,
    pub(crate) host_packages: bool,
    pub(crate) usage_interval: Option<Duration>,
    pub(crate) packages: Vec<PackageSpec>,
    pub(crate) environment: Option<EnvironmentName>,
    pub(crate) environments: Option<PathBuf>,
    pub(crate) acceptance: Option<Acceptance>,
    pub(crate) workspace: Option<WorkspaceChoice>,
    pub(crate) workspaces_of: Option<String>,
    pub(crate) compile_cache_owner: Option<String>,
    pub(crate) package_cache_owner: Option<String>,
    pub(crate) snippet: Option<Snippet>,
    pub(crate) image: Option<String>,
}

/// Why a request was not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidRequest {
    /// There is nothing to run.
    #[error("there is no code: give text, a file or a directory")]
    NoCode,
    /// A path is not one inside the work directory.
    #[error(transparent)]
    Path(#[from] InvalidPath),
    /// Two files have one path, or one is the directory of another.
    #[error("two files claim the path '{0}'")]
    SamePath(RelativePath),
    /// A pattern of files to collect is not one.
    #[error(transparent)]
    Glob(#[from] InvalidGlob),
    /// The files are too many or too large.
    #[error("{0}")]
    TooLarge(String),
    /// An argument or variable that the kernel would not take.
    #[error("{0}")]
    Text(String),
    /// A package is not written as one.
    #[error(transparent)]
    Package(#[from] InvalidPackage),
    /// An environment is not written as a name.
    #[error(transparent)]
    Environment(#[from] InvalidEnvironmentName),
    /// A workspace is not written as one.
    #[error(transparent)]
    Workspace(#[from] InvalidWorkspace),
    /// A network that cannot be had.
    #[error("{0}")]
    Network(&'static str),
    /// Packages beside an environment, or too many of them.
    #[error("{0}")]
    Packages(&'static str),
    /// The language is not written as a name.
    #[error("'{0}' is not a language name: write a name such as python, or python@3.11")]
    Language(String),
    /// Samples more often than can be taken.
    #[error("a usage interval of {0} ms is outside the range 10 to 60000")]
    UsageInterval(u128),
}

impl Request {
    /// Begins a request in a language: a name, an alias, or either with `@version`.
    pub fn builder(language: &str) -> RequestBuilder {
        RequestBuilder::new(language)
    }

    /// The name of this execution.
    pub fn id(&self) -> ExecutionId {
        self.id
    }

    /// The language asked for.
    pub fn language(&self) -> &LanguageChoice {
        &self.language
    }

    /// The code, if it came as text: the recipe of the language names its file.
    pub fn code(&self) -> Option<&str> {
        self.code.as_deref()
    }

    /// The files, the entry point first if there is no code text.
    pub fn files(&self) -> &[InputFile] {
        &self.files
    }

    /// The program's standard input.
    pub fn stdin(&self) -> &Stdin {
        &self.stdin
    }

    /// The program's arguments.
    pub fn args(&self) -> &[String] {
        &self.args
    }

    /// Variables added to the program's environment.
    pub fn env(&self) -> &BTreeMap<String, String> {
        &self.env
    }

    /// Limits of the run stage.
    pub fn run_limits(&self) -> &Limits {
        &self.run_limits
    }

    /// Limits of the compile stage.
    pub fn compile_limits(&self) -> &Limits {
        &self.compile_limits
    }

    /// What of the network the run stage reaches.
    pub fn network(&self) -> NetworkPolicy {
        self.network
    }

    /// What that is, if the policy is an allow-list.
    pub fn allow(&self) -> Option<&Arc<Allowlist>> {
        self.allow.as_ref()
    }

    /// Which files to bring back.
    pub fn collect(&self) -> &[Glob] {
        &self.collect
    }

    /// Host directories shown inside.
    pub fn volumes(&self) -> &[Volume] {
        &self.volumes
    }

    /// Where below the work directory the program starts.
    pub fn workdir(&self) -> Option<&RelativePath> {
        self.workdir.as_ref()
    }

    /// Whether packages that are installed on the host for its own use can be imported.
    pub fn host_packages(&self) -> bool {
        self.host_packages
    }

    /// Protections this request can do without if the host cannot give them.
    pub fn allow_missing(&self) -> &BTreeSet<Protection> {
        &self.allow_missing
    }

    /// How often to sample usage while the program runs.
    pub fn usage_interval(&self) -> Option<Duration> {
        self.usage_interval
    }

    /// Packages that are there for the program.
    pub fn packages(&self) -> &[PackageSpec] {
        &self.packages
    }

    /// The environment whose packages are there for the program.
    pub fn environment(&self) -> Option<&EnvironmentName> {
        self.environment.as_ref()
    }

    /// Where its environment is looked for before it is looked for among the user's own.
    pub fn environments(&self) -> Option<&Path> {
        self.environments.as_deref()
    }

    /// Has its environment looked for in this directory first: for a caller that keeps those of several
    /// people apart.
    #[must_use]
    pub fn with_environments(mut self, directory: PathBuf) -> Self {
        self.environments = Some(directory);
        self
    }

    /// When it was accepted, and how long it waited since, if its caller lets requests wait.
    pub fn acceptance(&self) -> Option<Acceptance> {
        self.acceptance
    }

    /// Has the report tell that the request was accepted then, and has waited so long for its turn.
    #[must_use]
    pub fn with_acceptance(mut self, acceptance: Acceptance) -> Self {
        self.acceptance = Some(acceptance);
        self
    }

    /// Bytes of what its author sent, as far as they are in memory: code, files, standard input, arguments and
    /// variables.
    pub fn content_bytes(&self) -> u64 {
        let stdin = match &self.stdin {
            Stdin::Bytes(bytes) => bytes.len(),
            _ => 0,
        };
        let files = self.files.iter().map(|file| file.contents.len() + file.path.as_str().len());
        let args = self.args.iter().map(String::len);
        let env = self.env.iter().map(|(name, value)| name.len() + value.len());
        let code = self.code.as_ref().map_or(0, String::len);
        (files.chain(args).chain(env).sum::<usize>() + code + stdin) as u64
    }

    /// The workspace whose files are there for the program.
    pub fn workspace(&self) -> Option<&WorkspaceChoice> {
        self.workspace.as_ref()
    }

    /// Whose workspaces are meant, if not the user's own.
    pub fn workspaces_of(&self) -> Option<&str> {
        self.workspaces_of.as_deref()
    }

    /// The owner of the compile cache entries that it may use and make; without one they are shared.
    pub fn compile_cache_owner(&self) -> Option<&str> {
        self.compile_cache_owner.as_deref()
    }

    /// The owner of the installed packages that it may use and make; without one they are shared.
    pub fn package_cache_owner(&self) -> Option<&str> {
        self.package_cache_owner.as_deref()
    }

    /// The image whose files and programs it is to see instead of the host's.
    pub fn image(&self) -> Option<&str> {
        self.image.as_deref()
    }

    /// Where a person's code lies in the entry file, if a template is around it.
    pub fn snippet(&self) -> Option<&Snippet> {
        self.snippet.as_ref()
    }
}

impl fmt::Debug for InputFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({} bytes)", self.path, self.contents.len())
    }
}

#[cfg(test)]
mod tests;
