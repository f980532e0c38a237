use std::path::{Path, PathBuf};

use super::recipe::{Recipe, RecipeError};

/// The files of one folder of `runtimes`: names and texts.
type Folder = (&'static str, &'static [(&'static str, &'static str)]);

/// Every folder of `runtimes`, put together by the build script: adding a language is adding one.
const FOLDERS: &[Folder] = include!(concat!(env!("OUT_DIR"), "/runtimes.rs"));

/// The recipes that are part of this program, with the files they came from.
pub(crate) fn recipes() -> Result<Vec<(PathBuf, Recipe)>, RecipeError> {
    FOLDERS.iter().map(read).collect()
}

fn read((language, files): &Folder) -> Result<(PathBuf, Recipe), RecipeError> {
    let path = Path::new("runtimes").join(language).join("runtime.toml");
    let text = |name: &str| {
        let found = files.iter().find(|(known, _)| *known == name);
        found.map(|(_, text)| *text).ok_or_else(|| format!("there is no {name} beside the recipe"))
    };
    let missing = |reason| RecipeError { file: path.clone(), line: None, reason };
    let recipe = text("runtime.toml").map_err(missing)?;
    let recipe = Recipe::parse(&path, recipe, |name| text(name).map(ToOwned::to_owned))?;
    Ok((path, recipe))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_recipe_is_well_formed() {
        let recipes = recipes().unwrap();
        assert!(recipes.len() >= 3, "only {} recipes were built in", recipes.len());
        for (file, recipe) in recipes {
            let folder = Path::new("runtimes").join(recipe.name());
            assert_eq!(file, folder.join("runtime.toml"), "a recipe is called as its folder");
            assert_eq!(recipe.hello().expected, "Hello, World!\n", "{}", recipe.name());
            let toolchain = &recipe.toolchain;
            assert!(toolchain.install.is_some(), "{}", recipe.name());
        }
    }
}
