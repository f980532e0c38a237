//! Package environments of clients.
//!
//! Each client has a directory in the server's data directory ([`directory_of`]). Environments that are built are there, as
//! the library writes them; builds that run or failed are known only to this process ([`build`]). A build waits in
//! the same queue as executions and takes its memory from the same budget.

mod build;
mod problem;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sandbox::{
    Environment, EnvironmentDirectory, EnvironmentName, Environments, LanguageChoice, PackageError,
    PackageSpec, Sandbox, with_causes,
};
use sandbox_api::{Code, Problem};
use sandbox_scheduler::Scheduler;
use sandbox_store::{AuditRecord, Store};
use serde_json::{Value, json};

use crate::config::{Config, Packages};
use crate::problems::of_scheduler;
pub(crate) use build::{Build, Progress};

/// The directory of clients without a key. Ids of keys are longer.
const WITHOUT_KEY: &str = "keyless";

/// A checked request for a build.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    pub(crate) name: EnvironmentName,
    pub(crate) language: LanguageChoice,
    pub(crate) packages: Vec<PackageSpec>,
}

/// The environments that a client can use.
#[derive(Default)]
pub(crate) struct Listed {
    /// Its own environments.
    pub(crate) built: Vec<Environment>,
    /// Its own builds that run or failed.
    pub(crate) builds: Vec<Arc<Build>>,
    /// The operator's environments, which all clients can use.
    pub(crate) shared: Vec<Environment>,
}

/// One environment that a client can use.
pub(crate) enum Found {
    Own(Environment),
    Build(Arc<Build>),
    Shared(Environment),
}

/// All environments of all clients.
pub(crate) struct ClientEnvironments {
    sandbox: Arc<Sandbox>,
    store: Arc<dyn Store>,
    scheduler: Arc<Scheduler>,
    /// The parent of the clients' directories.
    root: PathBuf,
    max_per_key: usize,
    packages: Packages,
    /// Whether keys share installed packages.
    shares_packages: bool,
    builds: Mutex<Builds>,
}

/// The builds that run or failed, by client and name.
#[derive(Default)]
struct Builds {
    by_name: HashMap<(Option<String>, EnvironmentName), Arc<Build>>,
    is_closed: bool,
}

impl ClientEnvironments {
    pub(crate) fn new(
        sandbox: Arc<Sandbox>,
        store: Arc<dyn Store>,
        scheduler: Arc<Scheduler>,
        config: &Config,
    ) -> Self {
        Self {
            sandbox,
            store,
            scheduler,
            root: config.environments_directory(),
            max_per_key: config.environments_per_key,
            packages: config.packages,
            shares_packages: config.shared_caches.packages,
            builds: Mutex::default(),
        }
    }

    /// Starts a build, or says why not. It continues even if its client disconnects.
    pub(crate) async fn begin(
        self: &Arc<Self>,
        owner: Option<String>,
        wanted: Wanted,
    ) -> Result<Arc<Build>, Problem> {
        if self.packages == Packages::Off {
            let reason = "this server fetches no packages: its setting 'packages' is off";
            return Err(Problem::new(Code::Forbidden, reason));
        }
        let (this, language) = (Arc::clone(self), wanted.language.clone());
        let directory = self.directory(owner.as_deref());
        let names = blocking(move || {
            let resolved = this.sandbox.runtimes().resolve(&language);
            resolved.map_err(|error| problem::of(&error.into()))?;
            directory.names().map_err(|error| problem::of(&error))
        });
        let build = self.reserve(owner.clone(), &wanted, &names.await?)?;
        let (this, begun) = (Arc::clone(self), Arc::clone(&build));
        tokio::spawn(async move { this.run(owner, wanted, &begun).await });
        Ok(build)
    }

    /// Lists the environments that this client can use.
    pub(crate) async fn list(self: &Arc<Self>, owner: Option<String>) -> Result<Listed, Problem> {
        let builds = {
            let builds = self.lock();
            let own = builds.by_name.iter().filter(|((whose, _), _)| *whose == owner);
            own.map(|(_, build)| Arc::clone(build)).collect()
        };
        let directory = self.directory(owner.as_deref());
        blocking(move || {
            let built = directory.list().map_err(|error| problem::of(&error))?;
            let shared = Environments::list().map_err(|error| problem::of(&error))?;
            Ok(Listed { built, builds, shared })
        })
        .await
    }

    /// Finds an environment that this client can use; its own come first.
    pub(crate) async fn find(
        self: &Arc<Self>,
        owner: Option<String>,
        name: EnvironmentName,
    ) -> Result<Found, Problem> {
        if let Some(build) = self.lock().by_name.get(&(owner.clone(), name.clone())) {
            return Ok(Found::Build(Arc::clone(build)));
        }
        let directory = self.directory(owner.as_deref());
        blocking(move || match directory.find(&name) {
            Ok(environment) => Ok(Found::Own(environment)),
            Err(PackageError::NoSuchEnvironment(_)) => {
                Environments::find(&name).map(Found::Shared).map_err(|error| problem::of(&error))
            }
            Err(error) => Err(problem::of(&error)),
        })
        .await
    }

    /// Removes an environment of this client, and cancels its build.
    pub(crate) async fn remove(
        self: &Arc<Self>,
        owner: Option<String>,
        name: EnvironmentName,
    ) -> Result<(), Problem> {
        let build = self.lock().by_name.remove(&(owner.clone(), name.clone()));
        if let Some(build) = &build {
            build.cancel();
        }
        match self.find(owner.clone(), name.clone()).await {
            Ok(Found::Own(_)) => {
                let directory = self.directory(owner.as_deref());
                let removed = name.clone();
                let remove = move || directory.remove(&removed);
                blocking(move || remove().map_err(|error| problem::of(&error))).await?;
            }
            Ok(Found::Shared(_)) if build.is_none() => {
                let reason = format!("'{name}' is the server's own, and for everyone");
                return Err(Problem::new(Code::Forbidden, reason));
            }
            Err(problem) if build.is_none() => return Err(problem),
            _ => {}
        }
        self.audit(owner, "environment.remove", &name, Value::Null).await;
        Ok(())
    }

    /// Removes a failed build, after its client was told of the failure.
    pub(crate) fn forget(&self, owner: Option<String>, name: &EnvironmentName) {
        let mut builds = self.lock();
        let key = (owner, name.clone());
        if builds.by_name.get(&key).is_some_and(|build| build.has_failed()) {
            builds.by_name.remove(&key);
        }
    }

    /// Starts no more builds, and cancels those that run.
    pub(crate) fn stop(&self) {
        let mut builds = self.lock();
        builds.is_closed = true;
        for build in builds.by_name.values() {
            build.cancel();
        }
    }

    /// Reserves a name for a build, if it is free and the maximum is not reached.
    fn reserve(
        &self,
        owner: Option<String>,
        wanted: &Wanted,
        built: &[EnvironmentName],
    ) -> Result<Arc<Build>, Problem> {
        let mut builds = self.lock();
        if builds.is_closed {
            return Err(Problem::new(Code::Unavailable, "the server is stopping"));
        }
        let key = (owner, wanted.name.clone());
        let is_building = builds.by_name.get(&key).is_some_and(|build| !build.has_failed());
        if is_building || built.contains(&wanted.name) {
            let reason = "there is one of this name: remove it first, or take another name";
            return Err(Problem::new(Code::AlreadyExists, reason));
        }
        let others = builds.by_name.keys().filter(|other| other.0 == key.0 && **other != key);
        if built.len() + others.count() >= self.max_per_key {
            let reason =
                format!("there are {} already, the most here: remove one", self.max_per_key);
            return Err(Problem::new(Code::TooManyEnvironments, reason));
        }
        let new = Arc::new(Build::new(wanted.clone()));
        builds.by_name.insert(key, Arc::clone(&new));
        Ok(new)
    }

    async fn run(self: Arc<Self>, owner: Option<String>, wanted: Wanted, build: &Arc<Build>) {
        let (name, language) = (wanted.name.clone(), wanted.language.to_string());
        let packages: Vec<_> = wanted.packages.iter().map(ToString::to_string).collect();
        let result = self.build(owner.clone(), wanted, build).await;
        let outcome =
            result.as_ref().map_or_else(|problem| json!(problem.code), |_| json!("built"));
        let detail = json!({ "language": language, "packages": packages, "outcome": outcome });
        self.audit(owner.clone(), "environment.build", &name, detail).await;
        if result.is_ok() && !self.release(owner.clone(), &name, build) {
            // It was removed just before it was finished.
            let directory = self.directory(owner.as_deref());
            let _ = blocking(move || directory.remove(&name).map_err(|error| problem::of(&error)))
                .await;
        }
        build.end(result);
    }

    /// Releases the reserved name: from here on the environment is found in the directory. Returns false if it was removed
    /// meanwhile.
    fn release(&self, owner: Option<String>, name: &EnvironmentName, build: &Arc<Build>) -> bool {
        let mut builds = self.lock();
        let key = (owner, name.clone());
        let is_wanted = builds.by_name.get(&key).is_some_and(|found| Arc::ptr_eq(found, build));
        if is_wanted {
            builds.by_name.remove(&key);
        }
        is_wanted
    }

    async fn build(
        &self,
        owner: Option<String>,
        wanted: Wanted,
        build: &Build,
    ) -> Result<Environment, Problem> {
        let admission = self.scheduler.admit(owner.clone(), Environments::build_memory());
        let admission = tokio::select! {
            admission = admission => admission.map_err(|error| of_scheduler(&error))?,
            () = build.cancelled() => return Err(problem::of(&PackageError::Cancelled)),
        };
        let (sandbox, cancel) = (Arc::clone(&self.sandbox), build.token());
        let directory = self.directory(owner.as_deref());
        let Wanted { name, language, packages } = wanted;
        blocking(move || {
            let environments = sandbox.environments();
            let mut progress = |_: &str| {};
            let result = environments
                .build_in(&directory, name, &language, &packages, &mut progress, &cancel)
                .map_err(|error| problem::of(&error));
            // Its sandboxes are gone only now.
            drop(admission);
            result
        })
        .await
    }

    fn directory(&self, owner: Option<&str>) -> EnvironmentDirectory {
        let cache_owner = owner.filter(|_| !self.shares_packages).map(ToOwned::to_owned);
        EnvironmentDirectory::at(directory_of(&self.root, owner))
            .with_package_cache_owner(cache_owner)
    }

    async fn audit(
        &self,
        actor: Option<String>,
        action: &str,
        name: &EnvironmentName,
        detail: Value,
    ) {
        let record = AuditRecord::new(actor, action, name.as_str(), detail);
        // A failure does not undo the action.
        if let Err(error) = self.store.audit(record).await {
            tracing::error!(%name, error = with_causes(&error), "no audit record");
        }
    }

    fn lock(&self) -> MutexGuard<'_, Builds> {
        // Nothing panics while it is locked.
        self.builds.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The directory of a client's environments. Ids of keys are safe file names: the server creates them from letters and
/// digits.
pub(crate) fn directory_of(root: &Path, owner: Option<&str>) -> PathBuf {
    root.join(owner.unwrap_or(WITHOUT_KEY))
}

/// Runs work that reads files or builds packages on a thread that may block.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|_| Err(Problem::new(Code::Internal, "internal error")))
}
