//! The sandbox of a helper, replaced when recipes or toolchains change.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sandbox::{LanguageChoice, Runtimes, Sandbox};

use crate::errors::Failure;

/// A language as it is found on this host, recipe and toolchain, in a few letters.
pub(super) fn describe(runtimes: &Runtimes, language: &LanguageChoice) -> Result<String, Failure> {
    let runtime = runtimes.resolve(language).map_err(|error| Failure::usage(&error))?;
    let mut hasher = DefaultHasher::new();
    format!("{runtime:?}").hash(&mut hasher);
    Ok(format!("{:016x}", hasher.finish()))
}

/// Sandboxes prepared ahead of requests: the library's own, by its own rules.
pub(super) struct SharedSandbox {
    /// None once it was taken down.
    current: Mutex<Option<Arc<Sandbox>>>,
}

impl SharedSandbox {
    pub(super) fn start() -> Result<Self, Failure> {
        Ok(Self { current: Mutex::new(Some(Arc::new(start()?))) })
    }

    /// A sandbox for a language that its client has found to be this. Recipes and toolchains are looked at
    /// once in the life of a sandbox: where they have changed since, another one takes its place.
    pub(super) fn sandbox(
        &self,
        language: &LanguageChoice,
        found: &str,
    ) -> Result<Arc<Sandbox>, Failure> {
        let mut current = self.lock();
        let is_as_found = |sandbox: &&Arc<Sandbox>| {
            describe(sandbox.runtimes(), language).is_ok_and(|known| known == found)
        };
        if let Some(sandbox) = current.as_ref().filter(is_as_found) {
            return Ok(Arc::clone(sandbox));
        }
        let fresh = Arc::new(start()?);
        *current = Some(Arc::clone(&fresh));
        Ok(fresh)
    }

    /// A sandbox for one program that is to be compiled anew.
    pub(super) fn without_cache() -> Result<Arc<Sandbox>, Failure> {
        let builder = Sandbox::builder().for_one_execution().without_compile_cache();
        builder.build().map(Arc::new).map_err(|error| Failure::internal(&error))
    }

    /// Takes the sandbox down, on the thread of whoever calls this once nothing runs any more: a process
    /// that ends meanwhile would leave that half done.
    pub(super) fn take_down(&self) {
        drop(self.lock().take());
    }

    fn lock(&self) -> MutexGuard<'_, Option<Arc<Sandbox>>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn start() -> Result<Sandbox, Failure> {
    Sandbox::new().map_err(|error| Failure::internal(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_language_is_described_alike_every_time_it_is_found() {
        let language: LanguageChoice = "bash".parse().unwrap();
        let found = || describe(&Runtimes::load(None).unwrap(), &language).unwrap();
        assert_eq!(found(), found());
        let other = describe(&Runtimes::load(None).unwrap(), &"python".parse().unwrap());
        assert_ne!(found(), other.unwrap());
    }
}
