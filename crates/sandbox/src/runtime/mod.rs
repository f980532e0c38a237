//! Languages: recipes are data; their toolchains are found by searching and probing this host or an image.

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

/// A language at a version: a recipe, and a toolchain of this host or of an image.
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
    /// Its environment variables, including `PATH`.
    pub(crate) variables: BTreeMap<String, String>,
}

impl Runtime {
    pub(crate) fn new(recipe: Arc<Recipe>, found: Found) -> Self {
        Self { recipe, found, image: None }
    }

    pub(crate) fn in_image(self, image: &Arc<RuntimeImage>) -> Self {
        Self { image: Some(Arc::clone(image)), ..self }
    }

    /// The image that contains the toolchain; `None` for a toolchain of the host.
    pub(crate) fn image(&self) -> Option<&RuntimeImage> {
        self.image.as_deref()
    }

    /// The canonical name of the language.
    pub fn name(&self) -> &str {
        self.recipe.name()
    }

    /// The version that the toolchain reports.
    pub fn version(&self) -> &str {
        &self.found.version
    }

    /// Path of the interpreter or compiler inside. For a toolchain of the host it is the same on the host.
    pub fn program(&self) -> &Path {
        &self.found.program
    }

    /// Whether the language has a compile stage.
    pub fn compiles(&self) -> bool {
        self.recipe.compile.is_some()
    }

    /// The root directory of the toolchain, which contains its `bin`.
    pub(crate) fn root(&self) -> &Path {
        &self.found.root
    }

    /// Host files that it needs besides what every sandbox mounts.
    pub(crate) fn trees(&self) -> &[Tree] {
        &self.found.trees
    }

    /// Host files that a stage needs.
    pub(crate) fn trees_in(&self, stage: Stage) -> &[Tree] {
        if stage == Stage::Run && !self.recipe.run.toolchain { &[] } else { self.trees() }
    }

    /// Directories with packages installed on the host.
    pub(crate) fn host_packages(&self) -> Vec<PathBuf> {
        toolchain::directories(&self.recipe.host_packages, self.root())
    }

    /// Whether it is in a directory that every sandbox mounts.
    pub(crate) fn is_system(&self) -> bool {
        self.found.is_system
    }

    /// Identifies the toolchain in cache keys: changes whenever the toolchain does.
    pub(crate) fn identity(&self) -> String {
        self.found.identity()
    }

    /// Like `identity`, and also changes whenever a library may have changed that the toolchain uses.
    pub(crate) fn identity_with_libraries(&self) -> String {
        self.found.identity_with_libraries()
    }

    /// Whether a stage uses layers.
    pub(crate) fn has_layers(&self, stage: Stage) -> bool {
        self.recipe.layers.values().any(|layer| layer.is_shown_to(stage))
    }

    /// Whether a stage supports warm runtimes.
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

    /// A runtime of a built-in recipe, without probing this host.
    pub(crate) fn unprobed(name: &str) -> Runtime {
        let recipe = builtin::recipes().find(|written| written.header.name == name).unwrap();
        of_recipe(Arc::clone(recipe.recipe()))
    }

    /// A runtime of a recipe in a test.
    pub(crate) fn of_text(text: &str) -> Runtime {
        of_recipe(Arc::new(recipe::tests::parse(text).unwrap()))
    }

    pub(crate) fn of_recipe(recipe: Arc<Recipe>) -> Runtime {
        let found = Found::unprobed(&format!("/usr/bin/the-{}", recipe.name()));
        Runtime::new(recipe, found)
    }
}
