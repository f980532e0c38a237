//! Languages: recipes as data, found on this host by looking and asking.

mod argument;
mod limits;
mod recipe;

mod builtin;
mod sources;

mod probe;
mod version;

mod entry;
mod registry;
mod spelling;

use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(crate) use argument::Values;
pub use entry::RuntimeStatus;
pub(crate) use recipe::{Compile, Recipe};
pub use recipe::{Hello, RecipeError};
pub use registry::{ResolveError, Runtimes};

/// A language at a version: a recipe and the toolchain of this host that carries it out.
#[derive(Clone, Debug)]
pub struct Runtime {
    recipe: Arc<Recipe>,
    program: PathBuf,
    version: String,
}

impl Runtime {
    pub(crate) fn new(recipe: Arc<Recipe>, program: PathBuf, version: String) -> Self {
        Self { recipe, program, version }
    }

    /// The language, by its own name and not by an alias.
    pub fn name(&self) -> &str {
        self.recipe.name()
    }

    /// What the toolchain says its version is.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The interpreter or compiler, a path that is the same on the host and inside.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// Whether there is a compile stage before the run stage.
    pub fn compiles(&self) -> bool {
        self.recipe.compile.is_some()
    }

    pub(crate) fn recipe(&self) -> &Recipe {
        &self.recipe
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A runtime of a built-in recipe that did not look at this host.
    pub(crate) fn unprobed(name: &str) -> Runtime {
        let recipe =
            builtin::recipes().unwrap().into_iter().find(|recipe| recipe.name() == name).unwrap();
        of_recipe(recipe)
    }

    pub(crate) fn of_recipe(recipe: Recipe) -> Runtime {
        let program = format!("/usr/bin/the-{}", recipe.name());
        Runtime::new(Arc::new(recipe), program.into(), "1.2.3".to_owned())
    }
}
