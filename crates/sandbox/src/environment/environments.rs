use chrono::{DateTime, Utc};
use sandbox_core::{CancelToken, EnvironmentName, LanguageChoice, PackageSpec, Request};
use serde::{Deserialize, Serialize};

use super::named::Named;
use super::{Installed, Lock, PackageError, Workshop};
use crate::Runtime;
use crate::engine::Engine;

/// Packages under a name: built once, then used by any number of executions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Environment {
    /// What it is called.
    pub name: EnvironmentName,
    /// When it was built.
    pub created_at: DateTime<Utc>,
    /// Which packages exactly.
    pub lock: Lock,
}

/// The environments of this user, and the means to build more of them.
#[derive(Clone, Copy)]
pub struct Environments<'a> {
    engine: &'a Engine,
}

impl<'a> Environments<'a> {
    pub(crate) fn of(engine: &'a Engine) -> Self {
        Self { engine }
    }

    /// Asks the package index for packages, installs them and gives them a name. One that had the name
    /// is replaced if, and only if, that succeeds. `progress` hears what is being done.
    pub fn build(
        &self,
        name: EnvironmentName,
        language: &LanguageChoice,
        packages: &[PackageSpec],
        progress: &mut dyn FnMut(&str),
        cancel: &CancelToken,
    ) -> Result<Environment, PackageError> {
        let named = Named::from_environment()?;
        let runtime = self.engine.runtimes.resolve(language)?;
        let mut workshop = workshop(self.engine, &runtime, progress, cancel)?;
        let lock = workshop.build_anew(packages)?;
        let environment = Environment { name, created_at: Utc::now(), lock };
        named.write(&environment)?;
        Ok(environment)
    }

    /// All of them, by name.
    pub fn list() -> Result<Vec<Environment>, PackageError> {
        let named = Named::from_environment()?;
        named.names()?.iter().map(|name| named.read(name)).collect()
    }

    /// One of them.
    pub fn find(name: &EnvironmentName) -> Result<Environment, PackageError> {
        Named::from_environment()?.read(name)
    }

    /// Forgets one. Its packages stay in the store, where others may share them, until that is cleared.
    pub fn remove(name: &EnvironmentName) -> Result<(), PackageError> {
        Named::from_environment()?.remove(name)
    }
}

/// The packages that a request asks for, by themselves or as an environment; nothing if it asks for
/// none.
pub(crate) fn install(
    request: &Request,
    runtime: &Runtime,
    engine: &Engine,
    progress: &mut dyn FnMut(&str),
    cancel: &CancelToken,
) -> Result<Option<Installed>, PackageError> {
    let lock = request.environment().map(|name| locked(name, runtime)).transpose()?;
    if lock.is_none() && request.packages().is_empty() {
        return Ok(None);
    }
    let mut workshop = workshop(engine, runtime, progress, cancel)?;
    match lock {
        Some(lock) => workshop.install_locked(&lock),
        None => workshop.install(request.packages()),
    }
    .map(Some)
}

fn workshop<'a>(
    engine: &'a Engine,
    runtime: &'a Runtime,
    progress: &'a mut dyn FnMut(&str),
    cancel: &'a CancelToken,
) -> Result<Workshop<'a>, PackageError> {
    let store = engine.store.as_ref();
    let store = store.map_err(|reason| PackageError::NoStore(reason.clone()))?;
    Ok(Workshop { backend: engine.backend.as_ref(), runtime, store, cancel, progress })
}

/// The lock of an environment, if it is for this runtime.
fn locked(name: &EnvironmentName, runtime: &Runtime) -> Result<Lock, PackageError> {
    let lock = Environments::find(name)?.lock;
    let (language, version) = (runtime.name(), runtime.version());
    if (lock.language.as_str(), lock.version.as_str()) != (language, version) {
        return Err(PackageError::OtherRuntime {
            name: name.clone(),
            built_for: format!("{}@{}", lock.language, lock.version),
            asked: format!("{language}@{version}"),
        });
    }
    Ok(lock)
}
