use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use serde::Serialize;

use super::probe::{self, Absent, Found};
use super::recipe::Recipe;
use super::registry::ResolveError;
use super::version;

/// A recipe and what this host has for it.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) recipe: Arc<Recipe>,
    /// One for each program of the recipe, filled when it is first asked for.
    probed: Vec<OnceLock<Result<Found, Absent>>>,
}

/// What is there for a language on this host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RuntimeStatus {
    /// The language.
    pub name: String,
    /// Other names for it.
    pub aliases: Vec<String>,
    /// Extensions of its files.
    pub extensions: Vec<String>,
    /// The version that runs by default.
    pub version: Option<String>,
    /// The interpreter or compiler.
    pub program: Option<PathBuf>,
    /// Why it cannot be used, if it cannot.
    pub missing: Option<String>,
    /// How to get it.
    pub install: Option<String>,
}

impl Entry {
    pub(crate) fn new(recipe: Recipe) -> Self {
        let probed = recipe.toolchain.programs.0.iter().map(|_| OnceLock::new());
        Self { probed: probed.collect(), recipe: Arc::new(recipe) }
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.recipe.name()).chain(self.recipe.aliases())
    }

    /// Each program of the recipe with what became of it, looked at only as far as the caller goes.
    fn candidates(&self) -> impl Iterator<Item = (&str, &Result<Found, Absent>)> {
        let toolchain = &self.recipe.toolchain;
        toolchain.programs.0.iter().zip(&self.probed).map(|(program, slot)| {
            let result = slot.get_or_init(|| probe::probe(program, &toolchain.version));
            (program.as_str(), result)
        })
    }

    pub(crate) fn first(&self) -> Option<&Found> {
        self.candidates().find_map(|(_, result)| result.as_ref().ok())
    }

    pub(crate) fn version(&self, wanted: &str) -> Result<&Found, ResolveError> {
        let mut others = Vec::new();
        for found in self.candidates().filter_map(|(_, result)| result.as_ref().ok()) {
            if version::satisfies(&found.version, wanted) {
                return Ok(found);
            }
            if !others.contains(&found.version) {
                others.push(found.version.clone());
            }
        }
        if others.is_empty() {
            return Err(self.toolchain_missing());
        }
        Err(ResolveError::VersionMissing {
            language: self.recipe.name().to_owned(),
            wanted: wanted.to_owned(),
            found: others,
        })
    }

    pub(crate) fn toolchain_missing(&self) -> ResolveError {
        ResolveError::ToolchainMissing {
            language: self.recipe.name().to_owned(),
            reason: self.why_missing(),
            install: self.recipe.toolchain.install.clone(),
        }
    }

    fn why_missing(&self) -> String {
        let mut not_found = Vec::new();
        let mut reasons = Vec::new();
        for (program, result) in self.candidates() {
            match result {
                Err(Absent::Unusable(reason)) if !reasons.contains(reason) => {
                    reasons.push(reason.clone());
                }
                Err(Absent::NotFound) => not_found.push(program),
                _ => {}
            }
        }
        if reasons.is_empty() {
            format!("there is no {}", not_found.join(", "))
        } else {
            reasons.join("; ")
        }
    }

    pub(crate) fn status(&self) -> RuntimeStatus {
        let found = self.first();
        RuntimeStatus {
            name: self.recipe.name().to_owned(),
            aliases: self.recipe.aliases().map(ToOwned::to_owned).collect(),
            extensions: self.recipe.extensions.clone(),
            version: found.map(|found| found.version.clone()),
            program: found.map(|found| found.program.clone()),
            missing: found.is_none().then(|| self.why_missing()),
            install: self.recipe.toolchain.install.clone(),
        }
    }
}
