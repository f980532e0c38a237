use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::{InputFile, InvalidRequest, Request};
use crate::{
    Allowlist, ExecutionId, Limits, NetworkPolicy, PackageSpec, Protection, RelativePath, Snippet,
    Stdin, Volume,
};

/// More files than any project that belongs in a request.
const MAX_FILES: usize = 10_000;
/// The kernel refuses a single argument or variable longer than this (`MAX_ARG_STRLEN`).
const MAX_TEXT_BYTES: usize = 128 * 1024;
const MAX_ARGS: usize = 4096;
const MAX_PACKAGES: usize = 200;

/// Collects the parts of a request; [`RequestBuilder::build`] validates it as a whole.
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
    host_packages: bool,
    environment: Option<String>,
    workspace: Option<String>,
    workspaces_of: Option<String>,
    compile_cache: bool,
    compile_cache_owner: Option<String>,
    package_cache_owner: Option<String>,
    snippet: Option<Snippet>,
    image: Option<String>,
}

impl RequestBuilder {
    pub(super) fn new(language: &str) -> Self {
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
            host_packages: true,
            environment: None,
            workspace: None,
            workspaces_of: None,
            compile_cache: true,
            compile_cache_owner: None,
            package_cache_owner: None,
            snippet: None,
            image: None,
        }
    }

    /// Sets the ID of the execution; by default a new one is generated.
    pub fn id(mut self, id: ExecutionId) -> Self {
        self.id = Some(id);
        self
    }

    /// Sets the code as text.
    pub fn code(mut self, code: impl Into<String>) -> Self {
        self.code = Some(code.into());
        self
    }

    /// Adds a file in the work directory. Without code as text, the first file is the entry point.
    pub fn file(mut self, path: impl Into<String>, contents: impl Into<Vec<u8>>) -> Self {
        self.files.push((path.into(), contents.into()));
        self
    }

    /// Sets the program's standard input; empty by default.
    pub fn stdin(mut self, stdin: impl Into<Stdin>) -> Self {
        self.stdin = stdin.into();
        self
    }

    /// Adds program arguments.
    pub fn args<T: Into<String>>(mut self, args: impl IntoIterator<Item = T>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Adds an environment variable.
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.insert(name.into(), value.into());
        self
    }

    /// Sets the limits of the run stage.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.run_limits = limits;
        self
    }

    /// Sets the limits of the compile stage.
    pub fn compile_limits(mut self, limits: Limits) -> Self {
        self.compile_limits = limits;
        self
    }

    /// Sets the network policy; none by default.
    pub fn network(mut self, network: NetworkPolicy) -> Self {
        self.network = network;
        self
    }

    /// Sets the network policy to this allow-list.
    pub fn allow(mut self, allow: Allowlist) -> Self {
        self.network = NetworkPolicy::Allowlist;
        self.allow = Some(allow);
        self
    }

    /// Collects the files that this pattern matches, and everything in a directory that it names.
    pub fn collect(mut self, pattern: impl Into<String>) -> Self {
        self.collect.push(pattern.into());
        self
    }

    /// Mounts a host directory.
    pub fn volume(mut self, volume: Volume) -> Self {
        self.volumes.push(volume);
        self
    }

    /// Starts the program in this directory of the work directory.
    pub fn workdir(mut self, directory: impl Into<String>) -> Self {
        self.workdir = Some(directory.into());
        self
    }

    /// Sets whether the program can import packages that are installed on the host; true by
    /// default.
    pub fn host_packages(mut self, visible: bool) -> Self {
        self.host_packages = visible;
        self
    }

    /// Allows this protection to be missing if the host cannot provide it.
    pub fn allow_missing(mut self, protection: Protection) -> Self {
        self.allow_missing.insert(protection);
        self
    }

    /// Samples resource usage at this interval while the program runs.
    pub fn usage_interval(mut self, interval: Duration) -> Self {
        self.usage_interval = Some(interval);
        self
    }

    /// Installs packages for the program: each a name, optionally with a version constraint.
    pub fn packages<T: Into<String>>(mut self, packages: impl IntoIterator<Item = T>) -> Self {
        self.packages.extend(packages.into_iter().map(Into::into));
        self
    }

    /// Uses the packages of a named environment.
    pub fn environment(mut self, name: impl Into<String>) -> Self {
        self.environment = Some(name.into());
        self
    }

    /// Uses a workspace, written `NAME` or `NAME:ro`: its files are placed in the work directory
    /// before the request's own, and the program's changes are saved. The first use creates it.
    pub fn workspace(mut self, workspace: impl Into<String>) -> Self {
        self.workspace = Some(workspace.into());
        self
    }

    /// Sets the owner of the workspace, for a process that serves several users. Each owner has
    /// names of its own, and a fair part of the CPU time.
    pub fn workspaces_of(mut self, owner: impl Into<String>) -> Self {
        self.workspaces_of = Some(owner.into());
        self
    }

    /// Whether a result of the compile stage can come from the cache. True by default.
    pub fn compile_cache(mut self, is_used: bool) -> Self {
        self.compile_cache = is_used;
        self
    }

    /// Separates compile cache entries by owner, for a process that serves several users: a cache
    /// hit would reveal what another user compiled.
    pub fn compile_cache_owner(mut self, owner: impl Into<String>) -> Self {
        self.compile_cache_owner = Some(owner.into());
        self
    }

    /// Separates installed packages by owner, for the same reason. All owners share the
    /// environments that the user of this process built.
    pub fn package_cache_owner(mut self, owner: impl Into<String>) -> Self {
        self.package_cache_owner = Some(owner.into());
        self
    }

    /// Uses the files and programs of this image, which was pulled or imported, instead of the
    /// host's.
    pub fn image(mut self, image: impl Into<String>) -> Self {
        self.image = Some(image.into());
        self
    }

    /// Sets where the user's code is in the entry file, so that errors refer to lines of that code.
    pub fn snippet(mut self, snippet: impl Into<Option<Snippet>>) -> Self {
        self.snippet = snippet.into();
        self
    }

    /// Validates the request and gives it an ID.
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
            host_packages: self.host_packages,
            environment,
            environments: None,
            acceptance: None,
            workspace,
            workspaces_of: self.workspaces_of,
            compile_cache: self.compile_cache,
            compile_cache_owner: self.compile_cache_owner,
            package_cache_owner: self.package_cache_owner,
            snippet: self.snippet,
            image: self.image,
        })
    }
}

fn check_files(files: Vec<(String, Vec<u8>)>) -> Result<Vec<InputFile>, InvalidRequest> {
    if files.len() > MAX_FILES {
        return Err(InvalidRequest::TooLarge(format!(
            "{} files are more than the {MAX_FILES} that one execution may have",
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
    if packages.len() > MAX_PACKAGES {
        return Err(InvalidRequest::Packages("there are more than 200 packages"));
    }
    Ok(packages.iter().map(|text| text.parse()).collect::<Result<_, _>>()?)
}

fn check_texts(args: &[String], env: &BTreeMap<String, String>) -> Result<(), InvalidRequest> {
    if args.len() > MAX_ARGS {
        return Err(InvalidRequest::Text(format!("more than {MAX_ARGS} arguments")));
    }
    for text in args.iter().chain(env.values()) {
        if text.contains('\0') {
            return Err(InvalidRequest::Text(
                "an argument or variable contains a zero byte".into(),
            ));
        }
        if text.len() >= MAX_TEXT_BYTES {
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
