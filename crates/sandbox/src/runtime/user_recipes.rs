use std::io;
use std::path::{Path, PathBuf};

use super::header::LazyRecipe;
use super::recipe::{Recipe, RecipeError};

/// Loads the recipes of a directory that has one directory for each language.
pub(crate) fn directory(directory: &Path) -> Result<Vec<LazyRecipe>, RecipeError> {
    let failed = |file: &Path, error: io::Error| RecipeError {
        file: file.to_owned(),
        line: None,
        reason: format!("cannot be read: {error}"),
    };
    let listing = std::fs::read_dir(directory).map_err(|error| failed(directory, error))?;
    let mut recipes = Vec::new();
    for entry in listing {
        let entry = entry.map_err(|error| failed(directory, error))?;
        let file = entry.path().join("runtime.toml");
        if !file.is_file() {
            continue;
        }
        let text = std::fs::read_to_string(&file).map_err(|error| failed(&file, error))?;
        let recipe = Recipe::parse(&file, &text, |name| {
            let beside = entry.path().join(name);
            std::fs::read_to_string(&beside)
                .map_err(|error| format!("{} cannot be read: {error}", beside.display()))
        })?;
        recipes.push(LazyRecipe::parsed(file, recipe));
    }
    // The order of a directory is arbitrary; sort, so that of two recipes with one name always the same one wins.
    recipes.sort_by(|left, right| left.file.cmp(&right.file));
    Ok(recipes)
}

/// `$XDG_CONFIG_HOME/sandbox-run/runtimes`, by the rules of the XDG base directory specification.
#[expect(
    clippy::disallowed_methods,
    reason = "this is the configuration code that finds the user's directory"
)]
pub(crate) fn user_directory() -> Option<PathBuf> {
    let absolute = |variable: &str| {
        std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute())
    };
    let configuration =
        absolute("XDG_CONFIG_HOME").or_else(|| Some(absolute("HOME")?.join(".config")))?;
    Some(configuration.join("sandbox-run/runtimes"))
}
