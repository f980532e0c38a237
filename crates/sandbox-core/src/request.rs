use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::glob::{Glob, InvalidGlob};
use crate::{
    Allowlist, EnvironmentName, ExecutionId, InvalidEnvironmentName, InvalidPackage, InvalidPath,
    InvalidWorkspace, Limits, NetworkPolicy, PackageSpec, Protection, RelativePath, Snippet, Stdin,
    Volume, WorkspaceChoice,
};

/// A language by name or alias, and a version if only that one will do: `python`, `python@3.11`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LanguageChoice {
    name: String,
    version: Option<String>,
}

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
    pub(crate) usage_interval: Option<Duration>,
    pub(crate) packages: Vec<PackageSpec>,
    pub(crate) environment: Option<EnvironmentName>,
    pub(crate) environments: Option<PathBuf>,
    pub(crate) acceptance: Option<Acceptance>,
    pub(crate) workspace: Option<WorkspaceChoice>,
    pub(crate) workspaces_of: Option<String>,
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

/// More files than any project that belongs into a request.
const MOST_FILES: usize = 10_000;
/// The kernel refuses a single argument or variable longer than this (`MAX_ARG_STRLEN`).
const LONGEST_TEXT: usize = 128 * 1024;
const MOST_ARGS: usize = 4096;
const MOST_PACKAGES: usize = 200;

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

    /// The workspace whose files are there for the program.
    pub fn workspace(&self) -> Option<&WorkspaceChoice> {
        self.workspace.as_ref()
    }

    /// Whose workspaces are meant, if not the user's own.
    pub fn workspaces_of(&self) -> Option<&str> {
        self.workspaces_of.as_deref()
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

/// Gathers a request; [`RequestBuilder::build`] checks it as a whole.
#[derive(Debug)]
#[must_use = "a builder does nothing until it is built"]
pub struct RequestBuilder {
    id: Option<ExecutionId>,
    language: String,
    code: Option<String>,
    files: Vec<(String, Vec<u8>)>,
    stdin: Stdin,
    args: Vec<String>,
    env: BTreeMap<String, String>,
    run_limits: Limits,
    compile_limits: Limits,
    network: NetworkPolicy,
    allow: Option<Allowlist>,
    collect: Vec<String>,
    volumes: Vec<Volume>,
    workdir: Option<String>,
    allow_missing: BTreeSet<Protection>,
    usage_interval: Option<Duration>,
    packages: Vec<String>,
    environment: Option<String>,
    workspace: Option<String>,
    workspaces_of: Option<String>,
    snippet: Option<Snippet>,
    image: Option<String>,
}

impl RequestBuilder {
    fn new(language: &str) -> Self {
        Self {
            id: None,
            language: language.to_owned(),
            code: None,
            files: Vec::new(),
            stdin: Stdin::Empty,
            args: Vec::new(),
            env: BTreeMap::new(),
            run_limits: Limits::run(),
            compile_limits: Limits::compile(),
            network: NetworkPolicy::None,
            allow: None,
            collect: Vec::new(),
            volumes: Vec::new(),
            workdir: None,
            allow_missing: BTreeSet::new(),
            usage_interval: None,
            packages: Vec::new(),
            environment: None,
            workspace: None,
            workspaces_of: None,
            snippet: None,
            image: None,
        }
    }

    /// The name of the execution, for one that was given its name before; a new one by default.
    pub fn id(mut self, id: ExecutionId) -> Self {
        self.id = Some(id);
        self
    }

    /// The program as text.
    pub fn code(mut self, code: impl Into<String>) -> Self {
        self.code = Some(code.into());
        self
    }

    /// A file below the work directory. Without code text, the first file is the entry point.
    pub fn file(mut self, path: impl Into<String>, contents: impl Into<Vec<u8>>) -> Self {
        self.files.push((path.into(), contents.into()));
        self
    }

    /// The program's standard input; empty by default.
    pub fn stdin(mut self, stdin: impl Into<Stdin>) -> Self {
        self.stdin = stdin.into();
        self
    }

    /// The program's arguments.
    pub fn args<T: Into<String>>(mut self, args: impl IntoIterator<Item = T>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// A variable in the program's environment.
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.insert(name.into(), value.into());
        self
    }

    /// Limits of the run stage.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.run_limits = limits;
        self
    }

    /// Limits of the compile stage.
    pub fn compile_limits(mut self, limits: Limits) -> Self {
        self.compile_limits = limits;
        self
    }

    /// What of the network the program reaches; nothing by default.
    pub fn network(mut self, network: NetworkPolicy) -> Self {
        self.network = network;
        self
    }

    /// What the program reaches: a loopback of its own and what this list names.
    pub fn allow(mut self, allow: Allowlist) -> Self {
        self.network = NetworkPolicy::Allowlist;
        self.allow = Some(allow);
        self
    }

    /// Brings back the files that fit this pattern, and everything in a directory that it names.
    pub fn collect(mut self, pattern: impl Into<String>) -> Self {
        self.collect.push(pattern.into());
        self
    }

    /// Shows a host directory inside.
    pub fn volume(mut self, volume: Volume) -> Self {
        self.volumes.push(volume);
        self
    }

    /// Starts the program in this directory below the work directory.
    pub fn workdir(mut self, directory: impl Into<String>) -> Self {
        self.workdir = Some(directory.into());
        self
    }

    /// Lets the execution go on where the host cannot give this protection.
    pub fn allow_missing(mut self, protection: Protection) -> Self {
        self.allow_missing.insert(protection);
        self
    }

    /// Samples usage this often while the program runs.
    pub fn usage_interval(mut self, interval: Duration) -> Self {
        self.usage_interval = Some(interval);
        self
    }

    /// Packages to be there for the program: each a name, or a name and the versions that will do.
    pub fn packages<T: Into<String>>(mut self, packages: impl IntoIterator<Item = T>) -> Self {
        self.packages.extend(packages.into_iter().map(Into::into));
        self
    }

    /// An environment that was built before, whose packages are to be there for the program.
    pub fn environment(mut self, name: impl Into<String>) -> Self {
        self.environment = Some(name.into());
        self
    }

    /// A workspace, as `NAME` or `NAME:ro`: its files are in the work directory before the request's own,
    /// and what the program leaves there is kept. It is made by its first use.
    pub fn workspace(mut self, workspace: impl Into<String>) -> Self {
        self.workspace = Some(workspace.into());
        self
    }

    /// Whose workspaces are meant, for a program that serves several people. Each has names of its own.
    pub fn workspaces_of(mut self, owner: impl Into<String>) -> Self {
        self.workspaces_of = Some(owner.into());
        self
    }

    /// The image whose files and programs it is to see instead of the host's: one that was pulled or imported.
    pub fn image(mut self, image: impl Into<String>) -> Self {
        self.image = Some(image.into());
        self
    }

    /// Says where a person's code lies in the entry file: errors are then told in lines of that code.
    pub fn snippet(mut self, snippet: impl Into<Option<Snippet>>) -> Self {
        self.snippet = snippet.into();
        self
    }

    /// Checks everything and gives the request its id.
    pub fn build(self) -> Result<Request, InvalidRequest> {
        if self.code.is_none() && self.files.is_empty() {
            return Err(InvalidRequest::NoCode);
        }
        check_texts(&self.args, &self.env)?;
        if let Some(interval) = self.usage_interval
            && !(10..=60_000).contains(&interval.as_millis())
        {
            return Err(InvalidRequest::UsageInterval(interval.as_millis()));
        }
        match (self.network, &self.allow) {
            (NetworkPolicy::Allowlist, None) => {
                return Err(InvalidRequest::Network(
                    "an allow-list needs something that is allowed",
                ));
            }
            (NetworkPolicy::None | NetworkPolicy::Localhost, Some(_)) => {
                return Err(InvalidRequest::Network("what is allowed needs the network allowlist"));
            }
            _ => {}
        }
        let files = check_files(self.files)?;
        let collect = self.collect.iter().map(|text| text.parse()).collect::<Result<_, _>>()?;
        let workdir = self.workdir.map(|text| text.parse()).transpose()?;
        let packages = check_packages(&self.packages, self.environment.is_some())?;
        let environment = self.environment.map(|text| text.parse()).transpose()?;
        let workspace = self.workspace.map(|text| text.parse()).transpose()?;
        Ok(Request {
            id: self.id.unwrap_or_else(ExecutionId::generate),
            language: self.language.parse()?,
            code: self.code,
            files,
            stdin: self.stdin,
            args: self.args,
            env: self.env,
            run_limits: self.run_limits,
            compile_limits: self.compile_limits,
            network: self.network,
            allow: self.allow.map(Arc::new),
            collect,
            volumes: self.volumes,
            workdir,
            allow_missing: self.allow_missing,
            usage_interval: self.usage_interval,
            packages,
            environment,
            environments: None,
            acceptance: None,
            workspace,
            workspaces_of: self.workspaces_of,
            snippet: self.snippet,
            image: self.image,
        })
    }
}

fn check_files(files: Vec<(String, Vec<u8>)>) -> Result<Vec<InputFile>, InvalidRequest> {
    if files.len() > MOST_FILES {
        return Err(InvalidRequest::TooLarge(format!(
            "{} files are more than the {MOST_FILES} that one execution may have",
            files.len()
        )));
    }
    let mut checked = Vec::with_capacity(files.len());
    let mut taken: BTreeSet<RelativePath> = BTreeSet::new();
    for (path, contents) in files {
        let path: RelativePath = path.parse()?;
        if !taken.insert(path.clone()) {
            return Err(InvalidRequest::SamePath(path));
        }
        checked.push(InputFile { path, contents, executable: false });
    }
    for path in &taken {
        let prefix = format!("{path}/");
        if taken.iter().any(|other| other.as_str().starts_with(&prefix)) {
            return Err(InvalidRequest::SamePath(path.clone()));
        }
    }
    Ok(checked)
}

fn check_packages(
    packages: &[String],
    has_environment: bool,
) -> Result<Vec<PackageSpec>, InvalidRequest> {
    if has_environment && !packages.is_empty() {
        let reason = "an environment has its packages: give one or the other";
        return Err(InvalidRequest::Packages(reason));
    }
    if packages.len() > MOST_PACKAGES {
        return Err(InvalidRequest::Packages("there are more than 200 packages"));
    }
    Ok(packages.iter().map(|text| text.parse()).collect::<Result<_, _>>()?)
}

fn check_texts(args: &[String], env: &BTreeMap<String, String>) -> Result<(), InvalidRequest> {
    if args.len() > MOST_ARGS {
        return Err(InvalidRequest::Text(format!("more than {MOST_ARGS} arguments")));
    }
    for text in args.iter().chain(env.values()) {
        if text.contains('\0') {
            return Err(InvalidRequest::Text(
                "an argument or variable contains a zero byte".into(),
            ));
        }
        if text.len() >= LONGEST_TEXT {
            return Err(InvalidRequest::Text("an argument or variable is over 128K long".into()));
        }
    }
    for name in env.keys() {
        if name.is_empty() || name.contains(['=', '\0']) {
            return Err(InvalidRequest::Text(format!(
                "'{}' is not a variable name",
                name.escape_debug()
            )));
        }
    }
    Ok(())
}

impl LanguageChoice {
    /// The name or alias, in lower case.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The version, if only that one will do.
    pub fn version(&self) -> Option<&str> {
        self.version.as_deref()
    }
}

impl FromStr for LanguageChoice {
    type Err = InvalidRequest;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (name, version) = match text.split_once('@') {
            Some((name, version)) => (name, Some(version)),
            None => (text, None),
        };
        let fits = |part: &str, extra: &str| {
            !part.is_empty()
                && part.len() <= 32
                && part.chars().all(|c| c.is_ascii_alphanumeric() || extra.contains(c))
        };
        if !fits(name, "+#-_.") || !version.is_none_or(|version| fits(version, ".-_+")) {
            return Err(InvalidRequest::Language(text.to_owned()));
        }
        Ok(Self { name: name.to_ascii_lowercase(), version: version.map(ToOwned::to_owned) })
    }
}

impl fmt::Display for LanguageChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        match &self.version {
            Some(version) => write!(f, "@{version}"),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for InputFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({} bytes)", self.path, self.contents.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_needs_something_to_run() {
        assert_eq!(Request::builder("python").build().unwrap_err(), InvalidRequest::NoCode);
    }

    #[test]
    fn two_files_cannot_share_a_place() {
        for (first, second) in [("a.py", "./a.py"), ("a", "a/b")] {
            let request = Request::builder("python").file(first, "").file(second, "").build();
            assert!(matches!(request, Err(InvalidRequest::SamePath(_))), "{first} and {second}");
        }
    }

    #[test]
    fn texts_the_kernel_would_not_take_are_refused() {
        let builder = || Request::builder("python").code("1");
        assert!(builder().args(["a\0b"]).build().is_err());
        assert!(builder().env("A=B", "c").build().is_err());
        assert!(builder().env("", "c").build().is_err());
        assert!(builder().args(["x".repeat(200_000)]).build().is_err());
        assert!(builder().usage_interval(Duration::from_millis(1)).build().is_err());
        assert!(builder().collect("../*").build().is_err());
        assert!(builder().workdir("/etc").build().is_err());
        assert!(builder().args(["fine"]).env("A", "b=c").build().is_ok());
    }

    #[test]
    fn a_request_has_a_new_name_or_the_one_it_was_given() {
        let builder = || Request::builder("python").code("1");
        let id = builder().build().unwrap().id();
        assert_ne!(builder().build().unwrap().id(), id);
        assert_eq!(builder().id(id).build().unwrap().id(), id);
    }

    #[test]
    fn a_language_may_carry_a_version() {
        let choice: LanguageChoice = "Python@3.11".parse().unwrap();
        assert_eq!((choice.name(), choice.version()), ("python", Some("3.11")));
        assert_eq!("c++".parse::<LanguageChoice>().unwrap().name(), "c++");
        for text in ["", "@3", "a b", "python@", "py/thon"] {
            assert!(text.parse::<LanguageChoice>().is_err(), "{text:?} was taken");
        }
    }
}
