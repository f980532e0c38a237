use std::path::Path;

use super::recipe::{Recipe, RecipeError};

/// A recipe that is part of this program, and the hello program beside it.
struct BuiltIn {
    file: &'static str,
    text: &'static str,
    hello: (&'static str, &'static str),
}

macro_rules! built_in {
    ($name:literal, $hello:literal) => {
        BuiltIn {
            file: concat!("runtimes/", $name, "/runtime.toml"),
            text: include_str!(concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/../../runtimes/",
                $name,
                "/runtime.toml"
            )),
            hello: (
                $hello,
                include_str!(concat!(
                    env!("CARGO_MANIFEST_DIR"),
                    "/../../runtimes/",
                    $name,
                    "/",
                    $hello
                )),
            ),
        }
    };
}

/// Every built-in recipe. A new language is a directory in `runtimes` and a line here.
const TABLE: &[BuiltIn] =
    &[built_in!("bash", "hello.sh"), built_in!("c", "hello.c"), built_in!("python", "hello.py")];

/// Reads the table.
pub(crate) fn recipes() -> Result<Vec<Recipe>, RecipeError> {
    TABLE
        .iter()
        .map(|entry| {
            Recipe::parse(Path::new(entry.file), entry.text, |name| {
                let (hello, code) = entry.hello;
                if name == hello {
                    Ok(code.to_owned())
                } else {
                    Err(format!("'{name}' is not in the table of built-in recipes"))
                }
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_recipe_is_well_formed() {
        let recipes = recipes().unwrap();
        assert_eq!(recipes.len(), TABLE.len());
        for recipe in recipes {
            assert_eq!(recipe.hello().expected, "Hello, World!\n", "{}", recipe.name());
            assert!(recipe.toolchain.install.is_some(), "{}", recipe.name());
        }
    }

    #[test]
    fn every_recipe_of_the_tree_is_in_the_table() {
        let tree = concat!(env!("CARGO_MANIFEST_DIR"), "/../../runtimes");
        let mut names: Vec<String> = std::fs::read_dir(tree)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| Path::new(tree).join(name).is_dir())
            .collect();
        names.sort();
        let table: Vec<String> =
            TABLE.iter().map(|entry| entry.file.split('/').nth(1).unwrap().to_owned()).collect();
        assert_eq!(names, table);
    }
}
