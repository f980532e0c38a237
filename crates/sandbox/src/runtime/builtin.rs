use std::path::Path;

use super::header::LazyRecipe;
use super::recipe::{Recipe, RecipeError};

/// One folder of `runtimes`.
#[derive(Debug)]
pub(crate) struct Folder {
    pub(crate) name: &'static str,
    /// Aliases, extensions, interpreters and markers.
    pub(crate) lists: [&'static [&'static str]; 4],
    /// Names and contents of its files.
    files: &'static [(&'static str, &'static str)],
}

/// Every folder of `runtimes`, collected by the build script: to add a language, add a folder.
const FOLDERS: &[Folder] = include!(concat!(env!("OUT_DIR"), "/runtimes.rs"));

/// The recipes that are part of this program.
pub(crate) fn recipes() -> impl Iterator<Item = LazyRecipe> {
    FOLDERS.iter().map(LazyRecipe::built_in)
}

pub(crate) fn read(folder: &Folder) -> Result<Recipe, RecipeError> {
    let path = Path::new("runtimes").join(folder.name).join("runtime.toml");
    let text = |name: &str| {
        let found = folder.files.iter().find(|(known, _)| *known == name);
        found.map(|(_, text)| *text).ok_or_else(|| format!("{name} is missing beside the recipe"))
    };
    let missing = |reason| RecipeError { file: path.clone(), line: None, reason };
    let recipe = text("runtime.toml").map_err(missing)?;
    Recipe::parse(&path, recipe, |name| text(name).map(ToOwned::to_owned))
}

#[cfg(test)]
mod tests {
    use super::super::header::Header;
    use super::*;

    #[test]
    fn every_built_in_recipe_is_well_formed() {
        assert!(FOLDERS.len() >= 20, "only {} languages are built in", FOLDERS.len());
        for folder in FOLDERS {
            let recipe = read(folder).unwrap();
            let name = folder.name;
            assert_eq!(recipe.name(), name, "a language is called as its folder");
            assert_eq!(recipe.hello().expected, "Hello, World!\n", "{name}");
            assert!(recipe.toolchain.install.is_some(), "{name}");
        }
    }

    #[test]
    fn the_header_of_the_build_script_equals_the_parsed_one() {
        for folder in FOLDERS {
            let recipe = read(folder).unwrap();
            assert_eq!(LazyRecipe::built_in(folder).header, Header::of(&recipe));
        }
    }

    #[test]
    fn both_languages_on_node_have_the_same_warm_script() {
        let text = |name: &str| {
            let folder = FOLDERS.iter().find(|folder| folder.name == name).unwrap();
            folder.files.iter().find(|(file, _)| *file == "warm.cjs").unwrap().1
        };
        assert_eq!(text("javascript"), text("typescript"));
    }
}
