use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use super::builtin::{self, Folder};
use super::recipe::Recipe;

/// The parts of a recipe that select a language.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) name: String,
    pub(crate) aliases: Vec<String>,
    pub(crate) extensions: Vec<String>,
    pub(crate) interpreters: Vec<String>,
    pub(crate) markers: Vec<String>,
}

/// A recipe with its header. Built-in recipes are parsed at first use: an execution needs only one of them, and parsing
/// all would take longer than many programs run.
#[derive(Debug)]
pub(crate) struct LazyRecipe {
    pub(crate) file: PathBuf,
    pub(crate) header: Header,
    recipe: OnceLock<Arc<Recipe>>,
    folder: Option<&'static Folder>,
}

impl Header {
    pub(crate) fn of(recipe: &Recipe) -> Self {
        Self {
            name: recipe.name().to_owned(),
            aliases: recipe.aliases().map(ToOwned::to_owned).collect(),
            extensions: recipe.extensions.clone(),
            interpreters: recipe.interpreters.clone(),
            markers: recipe.markers.clone(),
        }
    }

    fn built_in(folder: &Folder) -> Self {
        let list = |list: &[&str]| list.iter().map(ToString::to_string).collect();
        let [aliases, extensions, interpreters, markers] = folder.lists;
        Self {
            name: folder.name.to_owned(),
            aliases: list(aliases),
            extensions: list(extensions),
            interpreters: list(interpreters),
            markers: list(markers),
        }
    }

    /// The name, then the aliases.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        std::iter::once(&self.name).chain(&self.aliases).map(String::as_str)
    }
}

impl LazyRecipe {
    pub(crate) fn parsed(file: PathBuf, recipe: Recipe) -> Self {
        let header = Header::of(&recipe);
        Self { file, header, recipe: OnceLock::from(Arc::new(recipe)), folder: None }
    }

    pub(crate) fn built_in(folder: &'static Folder) -> Self {
        let file = Path::new("runtimes").join(folder.name).join("runtime.toml");
        let header = Header::built_in(folder);
        Self { file, header, recipe: OnceLock::new(), folder: Some(folder) }
    }

    pub(crate) fn recipe(&self) -> &Arc<Recipe> {
        self.recipe.get_or_init(|| {
            let folder = self.folder.expect("only a built-in recipe is parsed later");
            let recipe = builtin::read(folder).expect("a test parses every built-in recipe");
            Arc::new(recipe)
        })
    }
}
