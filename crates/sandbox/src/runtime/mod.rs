//! Languages: recipes as data, found on this host by looking and asking.

mod argument;
mod limits;
mod recipe;

mod builtin;
mod header;
mod user_recipes;

mod toolchain;
mod version;

mod entry;
mod registry;
mod spelling;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sandbox_core::{Stage, Tree};

pub(crate) use argument::Values;
pub use entry::RuntimeStatus;
pub(crate) use recipe::{
    Compile, Layer, PackageManager, Packages, Recipe, Variables, Warm, layer_place,
};
pub use recipe::{Hello, Installer, RecipeError};
pub use registry::{ResolveError, Runtimes};
use toolchain::Found;
pub use toolchain::in_image::TOOLCHAINS_IN_IMAGES;
pub(crate) use toolchain::in_image::{RunProgram, UnpackedImage};
pub use toolchain::toolchains_directory;
pub(crate) use toolchain::{existing, query};

/// A language at a version: a recipe and the toolchain, of this host or of an image, that carries it out.
#[derive(Clone, Debug)]
pub struct Runtime {
    recipe: Arc<Recipe>,
    found: Found,
    image: Option<Arc<RuntimeImage>>,
}

/// The image that a toolchain is in.
#[derive(Debug)]
pub(crate) struct RuntimeImage {
    /// Its name with its digest, for reports.
    pub(crate) name: String,
    /// Variables that it sets, the search path among them.
    pub(crate) variables: BTreeMap<String, String>,
}

impl Runtime {
    pub(crate) fn new(recipe: Arc<Recipe>, found: Found) -> Self {
        Self { recipe, found, image: None }
    }

    pub(crate) fn in_image(self, image: &Arc<RuntimeImage>) -> Self {
        Self { image: Some(Arc::clone(image)), ..self }
    }

    /// The image that it is in, if it is not the host's.
    pub(crate) fn image(&self) -> Option<&RuntimeImage> {
        self.image.as_deref()
    }

    /// The language, by its own name and not by an alias.
    pub fn name(&self) -> &str {
        self.recipe.name()
    }

    /// What the toolchain says its version is.
    pub fn version(&self) -> &str {
        &self.found.version
    }

    /// The interpreter or compiler: its path inside, which is the same on the host if it is the host's.
    pub fn program(&self) -> &Path {
        &self.found.program
    }

    /// Whether there is a compile stage before the run stage.
    pub fn compiles(&self) -> bool {
        self.recipe.compile.is_some()
    }

    /// The directory it belongs to: what holds its `bin`.
    pub(crate) fn root(&self) -> &Path {
        &self.found.root
    }

    /// What of the host must be shown for it, beside what every sandbox shows.
    pub(crate) fn trees(&self) -> &[Tree] {
        &self.found.trees
    }

    /// What of it a stage has to see.
    pub(crate) fn trees_in(&self, stage: Stage) -> &[Tree] {
        if stage == Stage::Run && !self.recipe.run.toolchain { &[] } else { self.trees() }
    }

    /// Directories of packages that the host has installed for its own use.
    pub(crate) fn host_packages(&self) -> Vec<PathBuf> {
        toolchain::directories(&self.recipe.host_packages, self.root())
    }

    /// Whether it is among the programs that every sandbox shows.
    pub(crate) fn is_system(&self) -> bool {
        self.found.is_system
    }

    /// Changes whenever the toolchain does: what was made with another one must not be used.
    pub(crate) fn identity(&self) -> String {
        self.found.identity()
    }

    /// The same, and whenever a library may have changed that it uses.
    pub(crate) fn identity_with_libraries(&self) -> String {
        self.found.identity_with_libraries()
    }

    /// Whether a stage sees something that is made once for the toolchain.
    pub(crate) fn has_layers(&self, stage: Stage) -> bool {
        self.recipe.layers.values().any(|layer| layer.is_shown_to(stage))
    }

    /// Whether what carries out a stage can be started before its program is known.
    pub(crate) fn is_started_ahead(&self, stage: Stage) -> bool {
        match stage {
            Stage::Compile => {
                self.recipe.compile.as_ref().is_some_and(|compile| compile.warm.is_some())
            }
            Stage::Run => self.recipe.run.warm.is_some(),
        }
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
        let recipe = builtin::recipes().find(|written| written.header.name == name).unwrap();
        of_recipe(Arc::clone(recipe.recipe()))
    }

    /// A runtime of a recipe that is written down in a test.
    pub(crate) fn of_text(text: &str) -> Runtime {
        of_recipe(Arc::new(recipe::tests::parse(text).unwrap()))
    }

    pub(crate) fn of_recipe(recipe: Arc<Recipe>) -> Runtime {
        let found = Found::unprobed(&format!("/usr/bin/the-{}", recipe.name()));
        Runtime::new(recipe, found)
    }
}
