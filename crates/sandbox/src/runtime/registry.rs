use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use sandbox_core::LanguageChoice;

use super::entry::{Entry, RuntimeStatus};
use super::header::{Header, LazyRecipe};
use super::recipe::{Hello, RecipeError};
use super::toolchain::HostPaths;
use super::{
    Installer, RunProgram, Runtime, RuntimeImage, UnpackedImage, builtin, spelling, user_recipes,
};

/// The languages: built-in recipes and the user's own, with their toolchains on this host.
///
/// A toolchain is probed when its language is first used; the result is cached.
#[derive(Debug)]
pub struct Runtimes {
    entries: Vec<Entry>,
    host_paths: Arc<HostPaths>,
}

/// Why a language cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ResolveError {
    /// No recipe has this name.
    #[error("unknown language '{name}'{} (known: {})", meant(did_you_mean.as_deref()), known.join(", "))]
    UnknownLanguage {
        /// The requested name.
        name: String,
        /// All known languages.
        known: Vec<String>,
        /// A similar name.
        did_you_mean: Option<String>,
    },
    /// There is a recipe but no toolchain on this host.
    #[error("{language} is not available on this host: {reason}{}", hint(install.as_deref()))]
    ToolchainMissing {
        /// The language.
        language: String,
        /// What was searched.
        reason: String,
        /// How to install it.
        install: Option<String>,
    },
    /// The toolchain is in an image, which only a sandbox can probe.
    #[error("{language} is in the image {image}, not on this host")]
    InImage {
        /// The language.
        language: String,
        /// The image.
        image: String,
    },
    /// The image does not contain the toolchain.
    #[error("{language} is not in the image {image}: {reason}")]
    NotInImage {
        /// The language.
        language: String,
        /// The image.
        image: String,
        /// What was searched.
        reason: String,
    },
    /// Only other versions of the language are available.
    #[error("{language} {wanted} is not available on this host; found {}", found.join(", "))]
    VersionMissing {
        /// The language.
        language: String,
        /// The requested version.
        wanted: String,
        /// The available versions.
        found: Vec<String>,
    },
}

fn meant(name: Option<&str>) -> String {
    name.map_or(String::new(), |name| format!(": did you mean '{name}'?"))
}

fn hint(install: Option<&str>) -> String {
    install.map_or(String::new(), |command| format!(" (install it with: {command})"))
}

impl Runtimes {
    /// Loads the built-in recipes and those in `extra`, a directory with files `<language>/runtime.toml`. Without `extra`,
    /// uses the user's configuration directory if it exists. These recipes replace built-in ones of the same name.
    pub fn load(extra: Option<&Path>) -> Result<Self, RecipeError> {
        let mut recipes: Vec<LazyRecipe> = builtin::recipes().collect();
        match extra {
            Some(directory) => recipes.extend(user_recipes::directory(directory)?),
            None => {
                if let Some(directory) = user_recipes::user_directory().filter(|path| path.is_dir())
                {
                    recipes.extend(user_recipes::directory(&directory)?);
                }
            }
        }
        Self::from_recipes(recipes, HostPaths::from_environment())
    }

    /// Later recipes replace earlier ones of the same name.
    fn from_recipes(recipes: Vec<LazyRecipe>, host_paths: HostPaths) -> Result<Self, RecipeError> {
        let host_paths = Arc::new(host_paths);
        let mut by_name = BTreeMap::new();
        for written in recipes {
            by_name.insert(written.header.name.clone(), written);
        }
        refuse_clashes(by_name.values())?;
        let entry = |written| Entry::new(written, Arc::clone(&host_paths));
        let entries = by_name.into_values().map(entry).collect();
        Ok(Self { entries, host_paths })
    }

    /// Probes every language on this host.
    pub fn probe_all(&self) -> Vec<RuntimeStatus> {
        self.entries.iter().map(Entry::status).collect()
    }

    /// The languages' names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|entry| entry.header().name.as_str())
    }

    /// Finds a language by name or alias, and its toolchain.
    pub fn resolve(&self, choice: &LanguageChoice) -> Result<Runtime, ResolveError> {
        let entry = self.entry(choice)?;
        if let Some(image) = entry.image() {
            let (language, image) = (entry.header().name.clone(), image.to_owned());
            return Err(ResolveError::InImage { language, image });
        }
        let found = match choice.version() {
            None => entry.default_toolchain().ok_or_else(|| entry.toolchain_missing())?,
            Some(wanted) => entry.version(wanted)?,
        };
        Ok(Runtime::new(Arc::clone(entry.recipe()), found))
    }

    /// Finds a language and its toolchain in an image. `run_program` runs programs of the image.
    pub(crate) fn resolve_in(
        &self,
        choice: &LanguageChoice,
        image: UnpackedImage<'_>,
        used: &Arc<RuntimeImage>,
        run_program: RunProgram<'_>,
    ) -> Result<Runtime, ResolveError> {
        let entry = self.entry(choice)?;
        let found = entry.find_in(image, choice.version(), run_program);
        let found = found.map_err(|reason| ResolveError::NotInImage {
            language: entry.header().name.clone(),
            image: used.name.clone(),
            reason,
        })?;
        Ok(Runtime::new(Arc::clone(entry.recipe()), found).in_image(used))
    }

    /// The canonical name of a language, whether or not a toolchain is available.
    pub fn proper_name(&self, choice: &LanguageChoice) -> Result<&str, ResolveError> {
        self.entry(choice).map(|entry| &*entry.header().name)
    }

    /// The image that the recipe of a language names for its toolchain.
    pub fn image_of(&self, language: &str) -> Option<&str> {
        self.find(language).and_then(Entry::image)
    }

    /// File that caches the versions of toolchains.
    pub(crate) fn version_cache(&self) -> Option<&Path> {
        self.host_paths.version_cache.as_deref()
    }

    fn entry(&self, choice: &LanguageChoice) -> Result<&Entry, ResolveError> {
        self.find(choice.name()).ok_or_else(|| {
            let names = self.entries.iter().flat_map(Entry::names);
            ResolveError::UnknownLanguage {
                name: choice.name().to_owned(),
                known: self.names().map(ToOwned::to_owned).collect(),
                did_you_mean: spelling::nearest(choice.name(), names).map(ToOwned::to_owned),
            }
        })
    }

    /// The entry file of a project: the recipe's entry name if present, otherwise the first path that matches the first
    /// matching pattern of the recipe.
    pub fn project_entry<'a>(&self, language: &str, paths: &[&'a str]) -> Option<&'a str> {
        let recipe = self.find(language)?.recipe();
        let usual = paths.iter().find(|path| **path == recipe.entry().as_str());
        usual.copied().or_else(|| {
            let mut patterns = recipe.entries().iter();
            patterns.find_map(|glob| paths.iter().find(|path| glob.matches(path)).copied())
        })
    }

    /// The language of a project, from a marker file at its top. If a marker fits several languages (package.json), the
    /// first one that finds an entry file.
    pub fn language_for_project(&self, paths: &[&str]) -> Option<&str> {
        let marks =
            |header: &Header| header.markers.iter().any(|marker| paths.contains(&marker.as_str()));
        let mut headers = self.entries.iter().map(Entry::header);
        let starts = |header: &Header| self.project_entry(&header.name, paths).is_some();
        headers.find(|header| marks(header) && starts(header)).map(|header| header.name.as_str())
    }

    /// How to install the toolchain of a language.
    pub fn installer(&self, language: &str) -> Option<&Installer> {
        self.find(language).map(|entry| &entry.recipe().toolchain.installer)
    }

    /// The language of a file, by its extension or by its first line if that is a `#!` line.
    pub fn language_for_file(&self, file_name: &str, first_line: &str) -> Option<&str> {
        let name = file_name.rsplit('/').next().unwrap_or(file_name);
        let extension = name.rsplit_once('.').map(|(_, extension)| extension);
        let interpreter = interpreter(first_line);
        let find = |fits: &dyn Fn(&Header) -> bool| {
            let mut headers = self.entries.iter().map(Entry::header);
            headers.find(|header| fits(header)).map(|header| header.name.as_str())
        };
        extension
            .and_then(|extension| {
                find(&|header| header.extensions.iter().any(|known| known == extension))
            })
            .or_else(|| {
                let interpreter = interpreter?;
                // python3.11 is python, unless a recipe names python3.11 itself.
                let bare = interpreter.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
                find(&|header| header.interpreters.iter().any(|known| known == interpreter))
                    .or_else(|| {
                        find(&|header| header.interpreters.iter().any(|known| known == bare))
                    })
            })
    }

    /// The test program of a language.
    pub fn hello(&self, name: &str) -> Option<&Hello> {
        self.find(name).map(|entry| entry.recipe().hello())
    }

    fn find(&self, name: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.names().any(|known| known == name))
    }
}

/// The program in a `#!` line. For `env`, the program that it starts.
fn interpreter(first_line: &str) -> Option<&str> {
    let mut words = first_line.strip_prefix("#!")?.split_whitespace();
    let mut name = words.next()?.rsplit('/').next()?;
    if name == "env" {
        name = words.find(|word| !word.starts_with('-') && !word.contains('='))?;
    }
    name.rsplit('/').next()
}

/// Refuses recipes that claim the same name, extension or interpreter.
fn refuse_clashes<'a>(recipes: impl Iterator<Item = &'a LazyRecipe>) -> Result<(), RecipeError> {
    let mut owners: BTreeMap<(&str, &str), &str> = BTreeMap::new();
    for LazyRecipe { file, header, .. } in recipes {
        let claims = header
            .names()
            .map(|name| ("name", name))
            .chain(header.extensions.iter().map(|text| ("extension", text.as_str())))
            .chain(header.interpreters.iter().map(|text| ("interpreter", text.as_str())));
        for claim in claims {
            if let Some(owner) = owners.insert(claim, &header.name) {
                let (kind, text) = claim;
                return Err(RecipeError {
                    file: file.clone(),
                    line: None,
                    reason: format!("the {kind} '{text}' already belongs to {owner}"),
                });
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::recipe::Recipe;
    use super::*;
    use std::path::PathBuf;

    fn recipe(name: &str, extras: &str, programs: &str, args: &str) -> LazyRecipe {
        let text = format!(
            "name = '{name}'\nentry = 'main'\n{extras}\n[toolchain]\nprograms = {programs}\n\
             install = 'get {name}'\nversion = {{ args = {args} }}\n[run]\ncommand = ['{{program}}']\n\
             [hello]\ncode = ''\nexpected = ''\n"
        );
        let file = PathBuf::from(format!("{name}/runtime.toml"));
        let recipe = Recipe::parse(&file, &text, |_| unreachable!()).unwrap();
        LazyRecipe::parsed(file, recipe)
    }

    fn resolve(runtimes: &Runtimes, choice: &str) -> Result<Runtime, ResolveError> {
        runtimes.resolve(&choice.parse().unwrap())
    }

    fn built_in() -> Runtimes {
        Runtimes::from_recipes(builtin::recipes().collect(), HostPaths::default()).unwrap()
    }

    #[test]
    fn a_language_is_found_by_name_and_alias() {
        let toy = recipe("toy", "aliases = ['t']", "['/bin/sh']", "['-c', 'echo 1.2.3']");
        let runtimes = Runtimes::from_recipes(vec![toy], HostPaths::default()).unwrap();
        for choice in ["toy", "t", "TOY", "toy@1.2", "t@1"] {
            let runtime = resolve(&runtimes, choice).unwrap();
            assert_eq!((runtime.name(), runtime.version()), ("toy", "1.2.3"));
            assert_eq!(runtime.program(), Path::new("/bin/sh"));
        }
    }

    #[test]
    fn an_unknown_language_is_a_one_line_error_with_a_suggestion() {
        let error = resolve(&built_in(), "pyton").unwrap_err();
        let message = error.to_string();
        assert!(
            message.starts_with("unknown language 'pyton': did you mean 'python'? (known: "),
            "{message}"
        );
        assert!(message.contains("bash, ") && !message.contains('\n'), "{message}");
        let error = resolve(&built_in(), "befunge").unwrap_err().to_string();
        assert!(!error.contains("did you mean"), "{error}");
    }

    #[test]
    fn a_missing_toolchain_is_an_error_with_its_install_command() {
        let toy = recipe("toy", "", "['no-such-toy', 'nor-this']", "[]");
        let runtimes = Runtimes::from_recipes(vec![toy], HostPaths::default()).unwrap();
        for choice in ["toy", "toy@1"] {
            assert_eq!(
                resolve(&runtimes, choice).unwrap_err().to_string(),
                "toy is not available on this host: there is no no-such-toy, nor-this \
                 (install it with: get toy)"
            );
        }
        let status = &runtimes.probe_all()[0];
        assert_eq!(status.missing.as_deref(), Some("there is no no-such-toy, nor-this"));
        assert_eq!((status.version.as_ref(), status.program.as_ref()), (None, None));
    }

    #[test]
    fn a_missing_version_is_an_error_with_the_available_ones() {
        let programs = "['no-such-toy', '/bin/sh', '/usr/bin/sh']";
        let toy = recipe("toy", "", programs, "['-c', 'echo 1.2.3']");
        let runtimes = Runtimes::from_recipes(vec![toy], HostPaths::default()).unwrap();
        assert_eq!(
            resolve(&runtimes, "toy@2").unwrap_err().to_string(),
            "toy 2 is not available on this host; found 1.2.3"
        );
    }

    #[test]
    fn a_toolchain_is_probed_once() {
        let directory = tempfile::tempdir().unwrap();
        let log = directory.path().join("log");
        let args = format!("['-c', 'echo x >> {}; echo 1.2.3']", log.display());
        let toy = recipe("toy", "", "['/bin/sh']", &args);
        let runtimes = Runtimes::from_recipes(vec![toy], HostPaths::default()).unwrap();
        assert!(!log.exists(), "the toolchain ran before anybody asked");
        for choice in ["toy", "toy@1", "toy@9"] {
            let _ = resolve(&runtimes, choice);
        }
        runtimes.probe_all();
        assert_eq!(std::fs::read_to_string(&log).unwrap(), "x\n");
    }

    #[test]
    fn the_language_of_a_file_comes_from_its_extension_or_first_line() {
        let runtimes = built_in();
        for (name, first_line, language) in [
            ("a.py", "", Some("python")),
            ("dir.d/run.sh", "", Some("bash")),
            ("main.c", "#!/bin/sh", Some("c")),
            ("script", "#!/usr/bin/env python3", Some("python")),
            ("script", "#!/usr/bin/env -S A=b python3 -u", Some("python")),
            ("script", "#! /usr/bin/python3.11 -u", Some("python")),
            ("script.x", "#!/bin/bash", Some("bash")),
            ("script", "#!/usr/bin/befunge", None),
            ("script", "#!", None),
            ("script", "echo", None),
            ("dir.py/script", "", None),
        ] {
            assert_eq!(
                runtimes.language_for_file(name, first_line),
                language,
                "{name} {first_line}"
            );
        }
    }

    #[test]
    fn a_recipe_of_the_user_replaces_the_built_in_one() {
        let directory = tempfile::tempdir().unwrap();
        let toy = directory.path().join("toy");
        std::fs::create_dir(&toy).unwrap();
        let text = include_str!("../../../../runtimes/bash/runtime.toml")
            .replace("\"sh\", \"shell\"", "\"our-shell\"");
        std::fs::write(toy.join("runtime.toml"), text).unwrap();
        std::fs::write(toy.join("hello.sh"), "echo ours").unwrap();
        let runtimes = Runtimes::load(Some(directory.path())).unwrap();
        assert!(runtimes.find("our-shell").is_some() && runtimes.find("shell").is_none());
        assert_eq!(runtimes.hello("bash").unwrap().code, "echo ours");
        assert_eq!(runtimes.names().filter(|name| *name == "bash").count(), 1);
    }

    #[test]
    fn two_languages_cannot_share_a_name_or_an_extension() {
        for (extras, claim) in [
            ("aliases = ['one']", "name 'one'"),
            ("extensions = ['o']", "extension 'o'"),
            ("interpreters = ['i']", "interpreter 'i'"),
        ] {
            let one = recipe("one", "extensions = ['o']\ninterpreters = ['i']", "['x']", "[]");
            let two = recipe("two", extras, "['x']", "[]");
            let error = Runtimes::from_recipes(vec![one, two], HostPaths::default()).unwrap_err();
            assert_eq!(
                error.to_string(),
                format!("two/runtime.toml: the {claim} already belongs to one")
            );
        }
    }

    #[test]
    fn a_named_directory_must_exist() {
        let error = Runtimes::load(Some(Path::new("/nonexistent/runtimes"))).unwrap_err();
        assert!(error.to_string().starts_with("/nonexistent/runtimes: cannot be read"));
    }
}
