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

/// A file that is placed before the program starts.
#[derive(Clone, PartialEq, Eq)]
pub struct InputFile {
    /// Its path, relative to the work directory.
    pub path: RelativePath,
    /// Its bytes.
    pub contents: Vec<u8>,
    /// Whether it is executable.
    pub executable: bool,
}

/// When a request was accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acceptance {
    /// The time of acceptance.
    pub at: DateTime<Utc>,
    /// How long it has waited since.
    pub waited: Duration,
}

/// A validated request.
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
    pub(crate) compile_cache: bool,
    pub(crate) compile_cache_owner: Option<String>,
    pub(crate) package_cache_owner: Option<String>,
    pub(crate) snippet: Option<Snippet>,
    pub(crate) image: Option<String>,
}

/// Why a request is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidRequest {
    /// There is nothing to run.
    #[error("there is no code: give text, a file or a directory")]
    NoCode,
    /// A path does not stay inside the work directory.
    #[error(transparent)]
    Path(#[from] InvalidPath),
    /// Two files have the same path, or one is a directory of another.
    #[error("two files claim the path '{0}'")]
    SamePath(RelativePath),
    /// A pattern of files to collect is invalid.
    #[error(transparent)]
    Glob(#[from] InvalidGlob),
    /// There are too many files, or they are too large.
    #[error("{0}")]
    TooLarge(String),
    /// The kernel would not accept an argument or a variable.
    #[error("{0}")]
    Text(String),
    /// The name of a package is invalid.
    #[error(transparent)]
    Package(#[from] InvalidPackage),
    /// The name of an environment is invalid.
    #[error(transparent)]
    Environment(#[from] InvalidEnvironmentName),
    /// The name of a workspace is invalid.
    #[error(transparent)]
    Workspace(#[from] InvalidWorkspace),
    /// The network settings are invalid.
    #[error("{0}")]
    Network(&'static str),
    /// Packages and an environment are both set, or there are too many packages.
    #[error("{0}")]
    Packages(&'static str),
    /// The name of a language is invalid.
    #[error("'{0}' is not a language name: write a name such as python, or python@3.11")]
    Language(String),
    /// The usage interval is out of range.
    #[error("a usage interval of {0} ms is outside the range 10 to 60000")]
    UsageInterval(u128),
}

impl Request {
    /// Starts to build a request for a language: a name or an alias, optionally with `@version`.
    pub fn builder(language: &str) -> RequestBuilder {
        RequestBuilder::new(language)
    }

    /// The ID of the execution.
    pub fn id(&self) -> ExecutionId {
        self.id
    }

    /// The requested language.
    pub fn language(&self) -> &LanguageChoice {
        &self.language
    }

    /// The code, if it was given as text: the recipe of the language chooses the file name.
    pub fn code(&self) -> Option<&str> {
        self.code.as_deref()
    }

    /// The files. Without code as text, the first one is the entry point.
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

    /// Variables that are added to the program's environment.
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

    /// The network policy of the run stage.
    pub fn network(&self) -> NetworkPolicy {
        self.network
    }

    /// The allow-list, if that is the policy.
    pub fn allow(&self) -> Option<&Arc<Allowlist>> {
        self.allow.as_ref()
    }

    /// Which files to collect.
    pub fn collect(&self) -> &[Glob] {
        &self.collect
    }

    /// Host directories that are mounted.
    pub fn volumes(&self) -> &[Volume] {
        &self.volumes
    }

    /// The directory to start in, relative to the work directory.
    pub fn workdir(&self) -> Option<&RelativePath> {
        self.workdir.as_ref()
    }

    /// Whether the program can import packages that are installed on the host.
    pub fn host_packages(&self) -> bool {
        self.host_packages
    }

    /// Protections that may be missing if the host cannot provide them.
    pub fn allow_missing(&self) -> &BTreeSet<Protection> {
        &self.allow_missing
    }

    /// How often to sample usage while the program runs.
    pub fn usage_interval(&self) -> Option<Duration> {
        self.usage_interval
    }

    /// Packages that are installed for the program.
    pub fn packages(&self) -> &[PackageSpec] {
        &self.packages
    }

    /// The environment whose packages the program can use.
    pub fn environment(&self) -> Option<&EnvironmentName> {
        self.environment.as_ref()
    }

    /// The directory in which the environment is looked up before the user's own.
    pub fn environments(&self) -> Option<&Path> {
        self.environments.as_deref()
    }

    /// Looks the environment up in this directory first. For a caller that separates the
    /// environments of several users.
    #[must_use]
    pub fn with_environments(mut self, directory: PathBuf) -> Self {
        self.environments = Some(directory);
        self
    }

    /// Replaces the standard input. For a caller that opens it for the request's id.
    #[must_use]
    pub fn with_stdin(mut self, stdin: Stdin) -> Self {
        self.stdin = stdin;
        self
    }

    /// When the request was accepted, if the caller queues requests.
    pub fn acceptance(&self) -> Option<Acceptance> {
        self.acceptance
    }

    /// Sets when the request was accepted, for the report.
    #[must_use]
    pub fn with_acceptance(mut self, acceptance: Acceptance) -> Self {
        self.acceptance = Some(acceptance);
        self
    }

    /// Size of the code, files, standard input, arguments and variables that are in memory, in
    /// bytes.
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

    /// The workspace whose files the program can use.
    pub fn workspace(&self) -> Option<&WorkspaceChoice> {
        self.workspace.as_ref()
    }

    /// The owner of the workspace and of the CPU time, if it is not the user of this process.
    pub fn workspaces_of(&self) -> Option<&str> {
        self.workspaces_of.as_deref()
    }

    /// Whether a result of the compile stage can come from the cache.
    pub fn uses_compile_cache(&self) -> bool {
        self.compile_cache
    }

    /// The owner of the compile cache entries to use. Without one, the entries are shared.
    pub fn compile_cache_owner(&self) -> Option<&str> {
        self.compile_cache_owner.as_deref()
    }

    /// The owner of the installed packages to use. Without one, the packages are shared.
    pub fn package_cache_owner(&self) -> Option<&str> {
        self.package_cache_owner.as_deref()
    }

    /// The image whose files and programs replace the host's.
    pub fn image(&self) -> Option<&str> {
        self.image.as_deref()
    }

    /// Where the user's code is in the entry file, if a template generated the file.
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
