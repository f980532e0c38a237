use std::collections::{BTreeMap, BTreeSet};

use sandbox::{Installer, LanguageChoice, Runtimes};
use sandbox_images::{Reference, Version};

use crate::errors::Failure;

/// What goes into an image.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) name: Reference,
    /// Of Debian.
    pub(super) packages: BTreeSet<String>,
    /// What comes from elsewhere, by language.
    pub(super) registries: BTreeMap<String, Installer>,
}

/// Programs from the Python package index are made for systems that have it.
const EXPECTED_OF_PYPI: &str = "libstdc++6";
/// The language that what comes from npm is written in, or started by.
const OF_NPM: &str = "javascript";

impl Plan {
    pub(super) fn make(
        runtimes: &Runtimes,
        wanted: &[String],
        name: Option<Reference>,
    ) -> Result<Self, Failure> {
        let mut languages: Vec<String> = Vec::new();
        for text in wanted {
            let language = whole_name(runtimes, text)?;
            if !languages.contains(&language) {
                languages.push(language);
            }
        }
        let name = match name {
            Some(name) => tagged(name)?,
            None => format!("sandbox-run/{}:latest", languages.join("-"))
                .parse()
                .map_err(|error| Failure::usage(&error))?,
        };
        let mut plan = Self { name, packages: BTreeSet::new(), registries: BTreeMap::new() };
        for language in &languages {
            plan.add(runtimes, language)?;
        }
        Ok(plan)
    }

    fn add(&mut self, runtimes: &Runtimes, language: &str) -> Result<(), Failure> {
        let installer = runtimes.installer(language);
        let installer = installer.filter(|installer| **installer != Installer::default());
        let installer = installer.ok_or_else(|| {
            Failure::Usage(format!(
                "the recipe of {language} does not say which packages bring it ([toolchain.installer])"
            ))
        })?;
        self.packages.extend(installer.apt.iter().cloned());
        if !installer.pip.is_empty() {
            self.packages.insert(EXPECTED_OF_PYPI.to_owned());
        }
        if !installer.npm.is_empty() && language != OF_NPM {
            self.add(runtimes, OF_NPM)?;
        }
        if !installer.pip.is_empty() || !installer.npm.is_empty() {
            self.registries.insert(language.to_owned(), installer.clone());
        }
        Ok(())
    }
}

/// The name of a language, whichever of its names was typed. It need not be there on this host.
fn whole_name(runtimes: &Runtimes, text: &str) -> Result<String, Failure> {
    let choice: LanguageChoice = text.parse().map_err(|error| Failure::usage(&error))?;
    if choice.version().is_some() {
        return Err(Failure::Usage(format!(
            "'{text}' asks for a version, and an image has the one of its release: choose that with --suite"
        )));
    }
    let name = runtimes.proper_name(&choice).map_err(|error| Failure::usage(&error))?;
    Ok(name.to_owned())
}

/// A digest is known when an image is there, and not before.
fn tagged(name: Reference) -> Result<Reference, Failure> {
    match name.version() {
        Version::Tag(_) => Ok(name),
        Version::Digest(_) => {
            Err(Failure::Usage(format!("'{name}' names an image by its digest: give it a tag")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(languages: &[&str]) -> Result<Plan, Failure> {
        let nobodys = tempfile::tempdir().unwrap();
        let runtimes = Runtimes::load(Some(nobodys.path())).unwrap();
        let languages: Vec<String> = languages.iter().map(|&name| name.to_owned()).collect();
        Plan::make(&runtimes, &languages, None)
    }

    fn packages(plan: &Plan) -> Vec<&str> {
        plan.packages.iter().map(String::as_str).collect()
    }

    #[test]
    fn packages_are_those_of_the_recipes() {
        let both = plan(&["sh", "c", "gcc", "bash"]).unwrap();
        assert_eq!(both.name.to_string(), "sandbox-run/bash-c:latest");
        assert_eq!(packages(&both), ["bash", "gcc", "libc6-dev"]);
        assert!(both.registries.is_empty());
    }

    #[test]
    fn what_comes_from_registries_brings_what_it_needs() {
        let go = plan(&["golang"]).unwrap();
        assert_eq!(packages(&go), [EXPECTED_OF_PYPI]);
        assert_eq!(go.registries.keys().collect::<Vec<_>>(), ["go"]);
        let typescript = plan(&["ts"]).unwrap();
        assert_eq!(typescript.name.to_string(), "sandbox-run/typescript:latest");
        assert_eq!(typescript.registries.keys().collect::<Vec<_>>(), ["javascript", "typescript"]);
    }

    /// What a Dockerfile installs: the value of one of its arguments, word by word.
    fn words<'a>(dockerfile: &'a str, argument: &str) -> BTreeSet<&'a str> {
        let begin = format!("ARG {argument}=\"");
        let value =
            dockerfile.lines().find_map(|line| line.strip_prefix(&begin)?.strip_suffix('"'));
        value.unwrap_or_default().split(' ').filter(|word| !word.is_empty()).collect()
    }

    #[test]
    fn dockerfiles_install_what_recipes_name() {
        let place = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/images");
        let entries = std::fs::read_dir(place).unwrap().flatten().map(|entry| entry.path());
        let mut found = BTreeSet::new();
        for directory in entries.filter(|path| path.is_dir()) {
            let language = directory.file_name().unwrap().to_str().unwrap().to_owned();
            let dockerfile = std::fs::read_to_string(directory.join("Dockerfile")).unwrap();
            let plan = plan(&[&language]).unwrap();
            let all = |part: fn(&Installer) -> &Vec<String>| -> BTreeSet<&str> {
                plan.registries.values().flat_map(part).map(String::as_str).collect()
            };
            let apt: BTreeSet<&str> = plan.packages.iter().map(String::as_str).collect();
            assert_eq!(words(&dockerfile, "PACKAGES"), apt, "{language}");
            assert_eq!(words(&dockerfile, "PIP"), all(|installer| &installer.pip), "{language}");
            assert_eq!(words(&dockerfile, "NPM"), all(|installer| &installer.npm), "{language}");
            found.insert(language);
        }
        let wanted = ["bash", "c", "cpp", "go", "java", "javascript", "python", "ruby", "rust"];
        assert!(
            wanted.iter().chain(&["typescript"]).all(|&name| found.contains(name)),
            "{found:?}"
        );
    }

    #[test]
    fn every_language_has_a_plan() {
        let nobodys = tempfile::tempdir().unwrap();
        let runtimes = Runtimes::load(Some(nobodys.path())).unwrap();
        for language in runtimes.names() {
            let mut plan = plan(&["bash"]).unwrap();
            plan.add(&runtimes, language).unwrap_or_else(|error| panic!("{language}: {error}"));
        }
    }

    #[test]
    fn what_cannot_be_built_is_told() {
        for (language, reason) in [
            ("pythn", "unknown language 'pythn': did you mean 'python'?"),
            ("bash@5", "'bash@5' asks for a version"),
        ] {
            let error = plan(&[language]).unwrap_err();
            assert!(error.to_string().starts_with(reason), "{error}");
        }
        let digest: Reference = format!("x@sha256:{}", "ab".repeat(32)).parse().unwrap();
        assert!(tagged(digest).unwrap_err().to_string().contains("give it a tag"));
    }
}
