//! The package managers: what differs between them beside the commands, which are in the recipes.

use std::collections::BTreeMap;
use std::path::Path;

use sandbox_core::{CollectedFile, HostPort, HostProxies, PackageSpec};

use super::host_files::HostFiles;
use super::host_variables::HostVariables;
use super::{Lock, LockedPackage, PackageError, cargo, npm, pip};
use crate::runtime::PackageManager;

/// Below the work directory, where a fetch leaves what it fetched.
pub(crate) const FETCHED: &str = "fetched";
/// Below the work directory, where wheels are left that were built from source.
pub(crate) const BUILT: &str = "built";
/// The manager's own lock: what a fetch writes if it does so itself, and what it is given to fetch
/// exactly that again.
pub(crate) const LOCK_FILE: &str = "lock";

/// What is always so with a manager.
pub(super) struct ManagerSpec {
    pub(super) name: &'static str,
    /// How a package is written, for somebody who wrote it otherwise.
    pub(super) example: &'static str,
    /// Directories the manager itself may be in, preferred first; `{root}` is the toolchain's.
    pub(super) tools: &'static [&'static str],
    /// What a person types if it is in none of them.
    pub(super) missing: &'static str,
    /// What is reached while fetching, if the host names no other index.
    pub(super) hosts: &'static [(&'static str, u16)],
    /// Further variables of the host that are passed on while fetching; files they name are shared.
    pub(super) pass_on: &'static [&'static str],
    /// A shell script that fetches what the file `packages` asks for, or exactly what the file `lock`
    /// says, into `fetched`. It is given the interpreter, and the manager as `$PACKAGE_MANAGER`.
    pub(super) fetch: &'static str,
    /// A shell script that installs what was fetched into `layer`. It is given the interpreter, and the
    /// place where the packages will be shown.
    pub(super) install: &'static str,
}

/// How the host is set up, for one manager.
#[derive(Debug, Default)]
pub(crate) struct Settings {
    /// The places of the package index; empty for those that are usual.
    pub(crate) places: Vec<HostPort>,
    /// Whether the usual places are reached too.
    pub(crate) default_index: bool,
    /// How the host itself reaches them.
    pub(crate) proxies: HostProxies,
    /// Variables that set the manager up inside as it is outside.
    pub(crate) variables: BTreeMap<String, String>,
    pub(crate) host_files: HostFiles,
}

/// What a fetch came to.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Resolution {
    pub(super) packages: Vec<LockedPackage>,
    /// Names of those that came as source and were built before they could be installed.
    pub(super) from_source: Vec<String>,
    /// The manager's own lock.
    pub(super) document: String,
}

impl PackageManager {
    pub(super) fn spec(self) -> &'static ManagerSpec {
        match self {
            Self::Pip => &pip::SPEC,
            Self::Npm => &npm::SPEC,
            Self::Cargo => &cargo::SPEC,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        self.spec().name
    }

    /// Refuses a specification that the manager would take for something else.
    pub(crate) fn check(self, spec: &PackageSpec) -> Result<(), PackageError> {
        let right = match self {
            Self::Pip => pip::is_spec(spec.as_str()),
            Self::Npm => npm::is_spec(spec.as_str()),
            Self::Cargo => cargo::is_spec(spec.as_str()),
        };
        let refused = || PackageError::Spec {
            spec: spec.clone(),
            manager: self.name(),
            example: self.spec().example,
        };
        right.then_some(()).ok_or_else(refused)
    }

    /// What asks for packages, in a form that the manager's script reads.
    pub(super) fn requirements(self, specs: &[PackageSpec]) -> String {
        match self {
            Self::Pip | Self::Npm => {
                specs.iter().fold(String::new(), |text, spec| text + spec.as_str() + "\n")
            }
            Self::Cargo => cargo::requirements(specs),
        }
    }

    /// Finds out how the manager is set up on the host, by asking it where that can be done.
    pub(crate) fn settings(
        self,
        program: &Path,
        tool: &Path,
        variables: &HostVariables,
    ) -> Result<Settings, PackageError> {
        let failed = |reason| PackageError::Settings { manager: self.name(), reason };
        match self {
            Self::Pip => pip::settings(&pip::ask(program, tool).map_err(failed)?, variables),
            Self::Npm => npm::settings(&npm::ask(program, tool).map_err(failed)?, variables),
            Self::Cargo => cargo::settings(cargo::config_file(variables).as_deref(), variables),
        }
    }

    /// Writes down what was fetched.
    pub(super) fn lock(self, files: &[CollectedFile]) -> Result<Resolution, PackageError> {
        match self {
            Self::Pip => pip::lock(files),
            Self::Npm => npm::lock(files),
            Self::Cargo => cargo::lock(files),
        }
        .map_err(PackageError::Refused)
    }

    /// Everything that decides what an installation leaves. What the code of a package could have had
    /// a hand in must not be taken for what others would get: where something was built from source,
    /// all that was fetched together decides.
    pub(super) fn identity(self, lock: &Lock) -> Vec<String> {
        let mut parts = match self {
            // The same packages can lie in different places, or be depended on in different ways.
            Self::Npm => npm::places(&lock.document),
            Self::Cargo => vec![lock.document.clone()],
            Self::Pip => Vec::new(),
        };
        for package in &lock.packages {
            parts.extend([&package.name, &package.version, &package.hash].map(Clone::clone));
        }
        if !lock.from_source.is_empty() {
            parts.extend(lock.requested.iter().map(ToString::to_string));
        }
        parts
    }

    /// What a line that it prints means for somebody who waits, if anything. There is none before the
    /// index has said yes: a request that cannot be met is answered by an error and nothing else.
    pub(super) fn fetched_package(self, line: &str) -> Option<String> {
        let package = match self {
            Self::Pip => pip::fetched_package(line),
            Self::Npm => npm::fetched_package(line),
            Self::Cargo => cargo::fetched_package(line),
        }?;
        let plain = package.chars().all(|letter| letter.is_ascii_graphic());
        plain.then(|| format!("{}: fetching {package}", self.name()))
    }

    /// The one line of its complaints that says what is wrong.
    pub(crate) fn error_line(self, stderr: &str) -> String {
        let line = match self {
            Self::Pip => pip::error_line(stderr),
            Self::Npm => npm::error_line(stderr),
            Self::Cargo => cargo::error_line(stderr),
        };
        let line = line.or_else(|| stderr.lines().rfind(|line| !line.trim().is_empty()));
        let line = line.unwrap_or("the package manager failed without a word");
        let line = line.trim().trim_end_matches('.');
        let printable = |letter: char| if letter.is_control() { ' ' } else { letter };
        line.chars().map(printable).take(500).collect()
    }
}
