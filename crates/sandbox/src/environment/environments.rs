use chrono::{DateTime, Utc};
use sandbox_core::{ByteSize, CancelToken, EnvironmentName, LanguageChoice, PackageSpec, Request};
use serde::{Deserialize, Serialize};

use super::{BuildContext, EnvironmentDirectory, Installed, Lock, PackageError};
use crate::plan;
use crate::runtime::{Runtime, Runtimes};

/// A named set of packages: built once, used by any number of executions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Environment {
    /// Its name.
    pub name: EnvironmentName,
    /// When it was built.
    pub created_at: DateTime<Utc>,
    /// The exact packages.
    pub lock: Lock,
}

/// The environments of the user. Builds, lists and removes them.
#[derive(Clone, Copy)]
pub struct Environments<'a> {
    runtimes: &'a Runtimes,
    context: BuildContext<'a>,
}

impl<'a> Environments<'a> {
    pub(crate) fn new(runtimes: &'a Runtimes, context: BuildContext<'a>) -> Self {
        Self { runtimes, context }
    }

    /// Builds an environment: resolves packages at the index, installs them and saves the result under a name. An existing
    /// environment of that name is replaced only if this succeeds. Calls `progress` with status messages.
    pub fn build(
        &self,
        name: EnvironmentName,
        language: &LanguageChoice,
        packages: &[PackageSpec],
        progress: &mut dyn FnMut(&str),
        cancel: &CancelToken,
    ) -> Result<Environment, PackageError> {
        let directory = EnvironmentDirectory::of_user()?;
        self.build_in(&directory, name, language, packages, progress, cancel)
    }

    /// Builds an environment in a certain directory.
    pub fn build_in(
        &self,
        directory: &EnvironmentDirectory,
        name: EnvironmentName,
        language: &LanguageChoice,
        packages: &[PackageSpec],
        progress: &mut dyn FnMut(&str),
        cancel: &CancelToken,
    ) -> Result<Environment, PackageError> {
        let runtime = self.runtimes.resolve(language)?;
        let owner = directory.package_cache_owner();
        let mut builder = self.context.builder(&runtime, owner, progress, cancel)?;
        let lock = builder.resolve_and_install(packages)?;
        let environment = Environment { name, created_at: Utc::now(), lock };
        directory.write(&environment)?;
        Ok(environment)
    }

    /// Memory limit of a build.
    pub fn build_memory() -> ByteSize {
        plan::package_limits().memory()
    }

    /// All environments of the user, sorted by name.
    pub fn list() -> Result<Vec<Environment>, PackageError> {
        EnvironmentDirectory::of_user()?.list()
    }

    /// An environment of the user.
    pub fn find(name: &EnvironmentName) -> Result<Environment, PackageError> {
        EnvironmentDirectory::of_user()?.find(name)
    }

    /// Removes an environment of the user. Its packages stay in the store until they are evicted or the store is cleared:
    /// other environments may share them.
    pub fn remove(name: &EnvironmentName) -> Result<(), PackageError> {
        EnvironmentDirectory::of_user()?.remove(name)
    }
}

/// Installs the packages that a request names, directly or as an environment; `None` if it names none.
pub(crate) fn install(
    request: &Request,
    runtime: &Runtime,
    context: BuildContext<'_>,
    progress: &mut dyn FnMut(&str),
    cancel: &CancelToken,
) -> Result<Option<Installed>, PackageError> {
    let environment = locked(request, runtime)?;
    if environment.is_none() && request.packages().is_empty() {
        return Ok(None);
    }
    let owner = match &environment {
        Some((_, LockOwner::Shared)) => None,
        _ => request.package_cache_owner(),
    };
    let mut builder = context.builder(runtime, owner, progress, cancel)?;
    match environment {
        Some((lock, _)) => builder.install_locked(&lock),
        None => builder.install(request.packages()),
    }
    .map(Some)
}

/// The lock of the environment that a request names; `None` if it names none. Fails if the environment was built for
/// another runtime.
pub(crate) fn locked(
    request: &Request,
    runtime: &Runtime,
) -> Result<Option<(Lock, LockOwner)>, PackageError> {
    let Some(name) = request.environment() else {
        return Ok(None);
    };
    let (environment, whose) = find_for(request, name)?;
    let lock = environment.lock;
    let (language, version) = (runtime.name(), runtime.version());
    if (lock.language.as_str(), lock.version.as_str()) != (language, version) {
        return Err(PackageError::OtherRuntime {
            name: name.clone(),
            built_for: format!("{}@{}", lock.language, lock.version),
            asked: format!("{language}@{version}"),
        });
    }
    Ok(Some((lock, whose)))
}

/// The owner of an environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LockOwner {
    /// The owner of the request.
    Requester,
    /// The user of this process; all owners may use it.
    Shared,
}

fn find_for(
    request: &Request,
    name: &EnvironmentName,
) -> Result<(Environment, LockOwner), PackageError> {
    if let Some(directory) = request.environments() {
        match EnvironmentDirectory::at(directory.to_owned()).find(name) {
            Err(PackageError::NoSuchEnvironment(_)) => {}
            found => return Ok((found?, LockOwner::Requester)),
        }
    }
    Ok((Environments::find(name)?, LockOwner::Shared))
}
