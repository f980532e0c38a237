//! What to install in an image.

use std::collections::{BTreeMap, BTreeSet};

use sandbox::{Installer, LanguageChoice, Runtimes};
use sandbox_images::{Reference, Version};

use crate::errors::Failure;

/// The packages of an image.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) name: Reference,
    /// Debian packages.
    pub(super) packages: BTreeSet<String>,
    /// Packages of pip and npm, by language.
    pub(super) registries: BTreeMap<String, Installer>,
}

/// Binary wheels of PyPI may assume that this library is installed.
const PYPI_BASE_PACKAGE: &str = "libstdc++6";
/// The language that npm packages need.
const NPM_LANGUAGE: &str = "javascript";

impl Plan {
    pub(super) fn new(
        runtimes: &Runtimes,
        wanted: &[String],
        name: Option<Reference>,
    ) -> Result<Self, Failure> {
        let mut languages: Vec<String> = Vec::new();
        for text in wanted {
            let language = canonical_name(runtimes, text)?;
            if !languages.contains(&language) {
                languages.push(language);
            }
        }
        let name = match name {
            Some(name) => require_tag(name)?,
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
                "cannot build an image with {language}: its recipe names no packages ([toolchain.installer])"
            ))
        })?;
        self.packages.extend(installer.apt.iter().cloned());
        if !installer.pip.is_empty() {
            self.packages.insert(PYPI_BASE_PACKAGE.to_owned());
        }
        if !installer.npm.is_empty() && language != NPM_LANGUAGE {
            self.add(runtimes, NPM_LANGUAGE)?;
        }
        if !installer.pip.is_empty() || !installer.npm.is_empty() {
            self.registries.insert(language.to_owned(), installer.clone());
        }
        Ok(())
    }
}

/// The canonical name of a language. Its toolchain need not be installed on this host.
fn canonical_name(runtimes: &Runtimes, text: &str) -> Result<String, Failure> {
    let choice: LanguageChoice = text.parse().map_err(|error| Failure::usage(&error))?;
    if choice.version().is_some() {
        return Err(Failure::Usage(format!(
            "cannot select version '{text}': an image has the version of its Debian release; select that with --suite"
        )));
    }
    let name = runtimes.proper_name(&choice).map_err(|error| Failure::usage(&error))?;
    Ok(name.to_owned())
}

/// Requires a tag, because the digest of an image is not known before it is built.
fn require_tag(name: Reference) -> Result<Reference, Failure> {
    match name.version() {
        Version::Tag(_) => Ok(name),
        Version::Digest(_) => Err(Failure::Usage(format!(
            "cannot build '{name}': name the image with a tag, not a digest"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(languages: &[&str]) -> Result<Plan, Failure> {
        let empty_configuration = tempfile::tempdir().unwrap();
        let runtimes = Runtimes::load(Some(empty_configuration.path())).unwrap();
        let languages: Vec<String> = languages.iter().map(|&name| name.to_owned()).collect();
        Plan::new(&runtimes, &languages, None)
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
    fn pip_and_npm_packages_add_their_dependencies() {
        let go = plan(&["golang"]).unwrap();
        assert_eq!(packages(&go), [PYPI_BASE_PACKAGE]);
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
        let empty_configuration = tempfile::tempdir().unwrap();
        let runtimes = Runtimes::load(Some(empty_configuration.path())).unwrap();
        for language in runtimes.names() {
            let mut plan = plan(&["bash"]).unwrap();
            plan.add(&runtimes, language).unwrap_or_else(|error| panic!("{language}: {error}"));
        }
    }

    #[test]
    fn what_cannot_be_built_is_refused() {
        for (language, reason) in [
            ("pythn", "unknown language 'pythn': did you mean 'python'?"),
            ("bash@5", "cannot select version 'bash@5'"),
        ] {
            let error = plan(&[language]).unwrap_err();
            assert!(error.to_string().starts_with(reason), "{error}");
        }
        let digest: Reference = format!("x@sha256:{}", "ab".repeat(32)).parse().unwrap();
        assert!(require_tag(digest).unwrap_err().to_string().contains("with a tag"));
    }
}
