//! Fetches and installs packages, each step in a sandbox of its own.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sandbox_core::{
    Backend, CancelToken, CollectedFile, EgressProxy, HostPort, InputFile, PackageSpec,
    RelativePath, StageOutcome, Tree,
};

use super::PackageError;
use super::host_variables::HostVariables;
use super::lock::{self, Lock};
use super::manager::{BUILT, FETCHED, LOCK_FILE, Resolution, Settings};
use super::step::{self, ProgressObserver};
use crate::plan::{self, PackageStep};
use crate::runtime::{Packages, Runtime, existing};
use crate::store::{LayerUse, LayerWriter, Store};

/// Port of the proxy inside the sandbox.
const PROXY_PORT: u16 = 3128;
/// File below the work directory with the requested packages, one on each line.
const REQUESTED: &str = "packages";
/// Directory below the work directory that an installation fills.
const LAYER: &str = "layer";
/// The only file of a layer that stores a lock.
const STORED_LOCK: &str = "lock.json";

/// Installed packages, ready to be mounted.
#[derive(Clone, Debug)]
pub(crate) struct Installed {
    /// The mount.
    pub(crate) tree: Tree,
    /// Variables by which programs find the packages.
    pub(crate) variables: BTreeMap<String, String>,
    /// Protects the layer from eviction.
    pub(crate) _in_use: Arc<LayerUse>,
}

/// Where packages are built and kept.
#[derive(Clone, Copy)]
pub(crate) struct BuildContext<'a> {
    pub(crate) backend: &'a dyn Backend,
    /// The store, or why there is none.
    pub(crate) store: Result<&'a Store, &'a str>,
}

impl<'a> BuildContext<'a> {
    /// A builder of packages for a runtime.
    pub(crate) fn builder(
        self,
        runtime: &'a Runtime,
        owner: Option<&'a str>,
        progress: &'a mut dyn FnMut(&str),
        cancel: &'a CancelToken,
    ) -> Result<PackageBuilder<'a>, PackageError> {
        let store = self.store.map_err(|reason| PackageError::NoStore(reason.to_owned()))?;
        Ok(PackageBuilder { backend: self.backend, runtime, store, owner, cancel, progress })
    }
}

/// Builds packages for one runtime.
pub(crate) struct PackageBuilder<'a> {
    pub(crate) backend: &'a dyn Backend,
    pub(crate) runtime: &'a Runtime,
    pub(crate) store: &'a Store,
    /// Owner of the layers; `None` for shared layers.
    pub(crate) owner: Option<&'a str>,
    pub(crate) cancel: &'a CancelToken,
    /// Receives status messages.
    pub(crate) progress: &'a mut dyn FnMut(&str),
}

impl<'a> PackageBuilder<'a> {
    /// Installs these packages. If they were requested before, uses the lock of that time and fetches nothing.
    pub(crate) fn install(&mut self, specs: &[PackageSpec]) -> Result<Installed, PackageError> {
        let packages = self.packages()?;
        let specs = sorted(specs);
        for spec in &specs {
            packages.manager.check(spec)?;
        }
        let key = lock::request_key(self.runtime, &scripts(packages), &specs, self.owner);
        let store = self.store;
        let about = format!("a lock of {} packages: {}", self.runtime.name(), list(&specs));
        let _in_use = store.layers().hold(&key, self.owner)?;
        // If the installation fails, the lock is not stored either.
        let kept = store.layers().build(&key, &about, |writer| {
            let lock = self.resolve_and_install(&specs)?;
            let text = serde_json::to_vec_pretty(&lock).expect("a lock is plain data");
            Ok::<_, PackageError>(writer.file(&plain(STORED_LOCK), &text, false)?)
        })?;
        let path = kept.join(STORED_LOCK);
        let text = std::fs::read(&path).map_err(PackageError::file("read", &path))?;
        let lock: Lock = serde_json::from_slice(&text)
            .map_err(|error| PackageError::file("parse", &path)(error.into()))?;
        self.install_locked(&lock)
    }

    /// Resolves packages at the index and installs them.
    pub(crate) fn resolve_and_install(
        &mut self,
        specs: &[PackageSpec],
    ) -> Result<Lock, PackageError> {
        let packages = self.packages()?;
        let specs = sorted(specs);
        for spec in &specs {
            packages.manager.check(spec)?;
        }
        let wanted = packages.manager.requirements(&specs);
        let files = self.fetch(packages, input(REQUESTED, wanted.into_bytes()))?;
        let Resolution { packages: locked, from_source, document } =
            packages.manager.lock(&files)?;
        let lock = Lock {
            language: self.runtime.name().to_owned(),
            version: self.runtime.version().to_owned(),
            manager: packages.manager,
            requested: specs,
            packages: locked,
            from_source,
            document,
        };
        self.layer(packages, &lock, |_| Ok(files))?;
        Ok(lock)
    }

    /// Resolution these packages. They are fetched again only if the store has lost them.
    pub(crate) fn install_locked(&mut self, lock: &Lock) -> Result<Installed, PackageError> {
        let packages = self.packages()?;
        let (layer, in_use) = self.layer(packages, lock, |builder| {
            let document = lock.document.as_bytes();
            let wanted = input(LOCK_FILE, document.to_vec());
            let mut files = builder.fetch(packages, wanted).map_err(|error| match error {
                PackageError::Refused(reason) => PackageError::Changed(reason),
                error => error,
            })?;
            // The manager's lock went in as an input, so it is collected only if it was changed.
            if !files.iter().any(|file| file.path == LOCK_FILE) {
                let (path, contents) = (LOCK_FILE.to_owned(), document.to_vec());
                files.push(CollectedFile { path, contents, executable: false });
            }
            if packages.manager.lock(&files)?.packages != lock.packages {
                return Err(PackageError::Changed("its files have changed".to_owned()));
            }
            Ok(files)
        })?;
        let tree = Tree { host: layer, inside: packages.inside().to_owned(), copy_on_write: false };
        Ok(Installed { tree, variables: packages.variables(), _in_use: Arc::new(in_use) })
    }

    /// The layer of a lock. If it is missing, installs the files that `fetch` returns.
    fn layer(
        &mut self,
        packages: &'a Packages,
        lock: &Lock,
        fetch: impl FnOnce(&mut Self) -> Result<Vec<CollectedFile>, PackageError>,
    ) -> Result<(PathBuf, LayerUse), PackageError> {
        let key = lock.layer_key(self.runtime, &scripts(packages), self.owner);
        let about = format!("{} packages: {}", lock.language, lock.summary());
        let layers = self.store.layers();
        let in_use = layers.hold(&key, self.owner)?;
        let mut is_new = false;
        let layer = layers.build(&key, &about, |writer| {
            is_new = true;
            let files = fetch(self)?;
            (self.progress)(&format!("{}: installing {}", lock.manager.name(), lock.summary()));
            self.install_into(packages, to_install(files, lock), writer)
        })?;
        if is_new {
            // A failed eviction of other packages does not affect these.
            let _ = layers.evict_packages();
        }
        Ok((layer, in_use))
    }

    /// First step: fetches, with network access to the index only.
    fn fetch(
        &mut self,
        packages: &'a Packages,
        wanted: InputFile,
    ) -> Result<Vec<CollectedFile>, PackageError> {
        let tool = self.tool(packages)?;
        let host = HostVariables::from_environment();
        let mut settings = packages.manager.settings(self.interpreter(packages), &tool, &host)?;
        for name in packages.manager.spec().pass_on {
            if let Some(value) = host.get(name) {
                let shared = settings.host_files.share(Path::new(value))?;
                settings
                    .variables
                    .insert((*name).to_owned(), shared.to_string_lossy().into_owned());
            }
        }
        if settings.default_index {
            let usual = packages.manager.spec().hosts.iter();
            settings
                .places
                .extend(usual.filter_map(|(host, port)| HostPort::new(host, *port).ok()));
        }
        let Settings { places, proxies, mut variables, host_files, .. } = settings;
        let egress_proxy = EgressProxy { port: PROXY_PORT, places, proxies };
        for name in ["http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"] {
            variables.insert(name.to_owned(), egress_proxy.url());
        }
        let mut files = vec![wanted];
        files.extend(host_files.files);
        let step = PackageStep {
            command: self.shell(packages, packages.manager.spec().fetch),
            files,
            trees: host_files.trees,
            variables,
            egress_proxy: Some(egress_proxy),
            collect: &[LOCK_FILE, &format!("{FETCHED}/**"), &format!("{BUILT}/**")],
        };
        let outcome = self.run(packages, &tool, step)?;
        Ok(outcome.files)
    }

    /// Second step: installs the fetched files, without a network.
    fn install_into(
        &mut self,
        packages: &'a Packages,
        files: Vec<CollectedFile>,
        writer: &LayerWriter,
    ) -> Result<(), PackageError> {
        let tool = self.tool(packages)?;
        let files = files.into_iter().map(|file| input(&file.path, file.contents)).collect();
        let step = PackageStep {
            command: self.shell(packages, packages.manager.spec().install),
            files,
            trees: Vec::new(),
            variables: BTreeMap::new(),
            egress_proxy: None,
            collect: &[&format!("{LAYER}/**")],
        };
        let outcome = self.run(packages, &tool, step)?;
        if let Some(skipped) = outcome.skipped.first() {
            let reason = format!("they hold '{}', and {}", skipped.path, skipped.reason);
            return Err(PackageError::Refused(reason));
        }
        for file in &outcome.files {
            let path = file.path.strip_prefix(LAYER).unwrap_or(&file.path);
            writer.file(&plain(path.trim_start_matches('/')), &file.contents, file.executable)?;
        }
        Ok(())
    }

    /// Runs one step and checks how it ended.
    fn run(
        &mut self,
        packages: &'a Packages,
        tool: &Path,
        mut step: PackageStep<'_>,
    ) -> Result<StageOutcome, PackageError> {
        let place = tool.to_string_lossy().into_owned();
        step.variables.insert("PACKAGE_MANAGER".to_owned(), place);
        let is_shown = |tree: &Tree| tool.starts_with(&tree.inside);
        if !tool.starts_with("/usr") && !self.runtime.trees().iter().any(is_shown) {
            let (host, inside) = (tool.to_owned(), tool.to_owned());
            step.trees.push(Tree { host, inside, copy_on_write: false });
        }
        let plan = plan::packages(self.runtime, step);
        let mut listener = ProgressObserver::new(packages.manager, &mut *self.progress);
        let outcome = self.backend.run(&plan, &mut listener, self.cancel)?;
        step::check(packages.manager, &plan, &outcome)?;
        Ok(outcome)
    }

    fn packages(&self) -> Result<&'a Packages, PackageError> {
        let missing = || PackageError::NoManager { language: self.runtime.name().to_owned() };
        self.runtime.recipe().packages.as_ref().ok_or_else(missing)
    }

    /// The installation directory of the manager.
    fn tool(&self, packages: &Packages) -> Result<PathBuf, PackageError> {
        let spec = packages.manager.spec();
        let root = self.runtime.root().to_string_lossy();
        let candidates = spec.tools.iter().map(|tool| tool.replace("{root}", &root));
        let mut found = candidates.flat_map(|candidate| existing(&candidate));
        found.next().ok_or_else(|| PackageError::ManagerMissing {
            manager: spec.name,
            language: self.runtime.name().to_owned(),
            install: spec.missing,
        })
    }

    /// The interpreter that runs the manager.
    fn interpreter(&self, packages: &'a Packages) -> &'a Path {
        packages.runs_with.as_deref().unwrap_or(self.runtime.program())
    }

    /// The command that runs a script of the manager.
    fn shell(&self, packages: &'a Packages, script: &str) -> Vec<String> {
        let (program, inside) = (self.interpreter(packages), packages.inside());
        let arguments = ["/bin/sh", "-c", script, packages.manager.name()].map(ToOwned::to_owned);
        let paths = [program, inside].map(|path| path.to_string_lossy().into_owned());
        arguments.into_iter().chain(paths).collect()
    }
}

/// The scripts and paths that determine a build, as parts of its key.
fn scripts(packages: &Packages) -> [String; 3] {
    let spec = packages.manager.spec();
    [spec.fetch, spec.install, &packages.inside().to_string_lossy()].map(ToOwned::to_owned)
}

/// The fetched files to install. Files in `built` count only if the lock names packages built from source: otherwise the
/// lock alone determines the contents of a layer.
fn to_install(mut files: Vec<CollectedFile>, lock: &Lock) -> Vec<CollectedFile> {
    if lock.from_source.is_empty() {
        files.retain(|file| !file.path.starts_with(BUILT));
    }
    files
}

fn sorted(specs: &[PackageSpec]) -> Vec<PackageSpec> {
    let mut specs = specs.to_vec();
    specs.sort();
    specs.dedup();
    specs
}

fn list(specs: &[PackageSpec]) -> String {
    specs.iter().map(PackageSpec::as_str).collect::<Vec<_>>().join(", ")
}

fn input(path: &str, contents: Vec<u8>) -> InputFile {
    InputFile { path: plain(path), contents, executable: false }
}

/// Paths here are constants, or were checked when the files were collected.
fn plain(path: &str) -> RelativePath {
    path.parse().expect("what is collected has a plain path")
}
