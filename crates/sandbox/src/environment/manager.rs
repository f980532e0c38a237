//! The package managers, and what differs between them.

use std::collections::BTreeMap;
use std::path::Path;

use sandbox_core::{CollectedFile, HostPort, HostProxies, PackageSpec};

use super::host_files::HostFiles;
use super::host_variables::HostVariables;
use super::{Lock, LockedPackage, PackageError, cargo, npm, pip};
use crate::runtime::PackageManager;

/// Directory below the work directory for fetched files.
pub(crate) const FETCHED: &str = "fetched";
/// Directory below the work directory for wheels built from source.
pub(crate) const BUILT: &str = "built";
/// The manager's own lock file: an output of a fetch if the manager writes one, and the input for fetching exactly the same
/// again.
pub(crate) const LOCK_FILE: &str = "lock";

/// Constants of a package manager.
pub(super) struct ManagerSpec {
    pub(super) name: &'static str,
    /// Examples of valid specifications, for error messages.
    pub(super) example: &'static str,
    /// Directories that can contain the manager, preferred first; `{root}` is the toolchain's root.
    pub(super) tools: &'static [&'static str],
    /// The command that installs it.
    pub(super) missing: &'static str,
    /// Hosts of the default index.
    pub(super) hosts: &'static [(&'static str, u16)],
    /// Further variables of the host to pass on while fetching. Files that they name are shared with the sandbox.
    pub(super) pass_on: &'static [&'static str],
    /// Shell script that fetches the packages in the file `packages`, or exactly those in the file `lock`, into `fetched`.
    /// Gets the interpreter as an argument and the manager in `$PACKAGE_MANAGER`.
    pub(super) fetch: &'static str,
    /// Shell script that installs the fetched files into `layer`. Gets the interpreter and the mount point of the packages
    /// as arguments.
    pub(super) install: &'static str,
}

/// The host's settings for a package manager.
#[derive(Debug, Default)]
pub(crate) struct Settings {
    /// Hosts of the package index, if configured.
    pub(crate) places: Vec<HostPort>,
    /// Whether the hosts of the default index are reachable too.
    pub(crate) default_index: bool,
    /// The host's proxies.
    pub(crate) proxies: HostProxies,
    /// Variables that give the manager the same settings inside.
    pub(crate) variables: BTreeMap<String, String>,
    pub(crate) host_files: HostFiles,
}

/// The exact packages that a fetch resolved to.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Resolution {
    pub(super) packages: Vec<LockedPackage>,
    /// Names of packages that were built from source.
    pub(super) from_source: Vec<String>,
    /// The contents of the manager's own lock file.
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

    /// Refuses a specification that the manager would interpret as something else.
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

    /// The requested packages in the format that the manager's script reads.
    pub(super) fn requirements(self, specs: &[PackageSpec]) -> String {
        match self {
            Self::Pip | Self::Npm => {
                specs.iter().fold(String::new(), |text, spec| text + spec.as_str() + "\n")
            }
            Self::Cargo => cargo::requirements(specs),
        }
    }

    /// Reads the manager's settings on the host, from the manager itself where it can print them.
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

    /// The exact packages among the fetched files.
    pub(super) fn lock(self, files: &[CollectedFile]) -> Result<Resolution, PackageError> {
        match self {
            Self::Pip => pip::lock(files),
            Self::Npm => npm::lock(files),
            Self::Cargo => cargo::lock(files),
        }
        .map_err(PackageError::Refused)
    }

    /// Everything that determines the result of an installation, as parts of its key. Package code that ran during a build
    /// can influence the result, and must not affect others: if anything was built from source, the whole request is part
    /// of the key.
    pub(super) fn identity(self, lock: &Lock) -> Vec<String> {
        let mut parts = match self {
            // The same packages can be installed at different paths.
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

    /// The progress message for a line of the manager's output, if it has one. None is sent before the index accepted the
    /// request: a request that cannot be met gives an error and nothing else.
    pub(super) fn fetched_package(self, line: &str) -> Option<String> {
        let package = match self {
            Self::Pip => pip::fetched_package(line),
            Self::Npm => npm::fetched_package(line),
            Self::Cargo => cargo::fetched_package(line),
        }?;
        let plain = package.chars().all(|letter| letter.is_ascii_graphic());
        plain.then(|| format!("{}: fetching {package}", self.name()))
    }

    /// The line of the manager's standard error that states the cause.
    pub(crate) fn error_line(self, stderr: &str) -> String {
        let line = match self {
            Self::Pip => pip::error_line(stderr),
            Self::Npm => npm::error_line(stderr),
            Self::Cargo => cargo::error_line(stderr),
        };
        let line = line.or_else(|| stderr.lines().rfind(|line| !line.trim().is_empty()));
        let line = line.unwrap_or("the package manager failed without an error message");
        let line = line.trim().trim_end_matches('.');
        let printable = |letter: char| if letter.is_control() { ' ' } else { letter };
        line.chars().map(printable).take(500).collect()
    }
}
