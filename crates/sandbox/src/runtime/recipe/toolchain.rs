use serde::Deserialize;

use super::values::{ImageName, MinVersion, Programs};

/// Where to find the interpreter or compiler, and how to read its version.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Toolchain {
    /// Names, paths or patterns, the preferred one first.
    pub(crate) programs: Programs,
    pub(crate) version: VersionRule,
    /// Older versions are not used.
    pub(crate) least: Option<MinVersion>,
    /// Arguments that make a program found on `PATH` print its real path or root directory. Shims print the program that
    /// they start.
    pub(crate) real: Option<Vec<String>>,
    /// Further host files to mount, if they exist.
    #[serde(default)]
    pub(crate) shows: Vec<String>,
    /// Further programs that it requires.
    #[serde(default)]
    pub(crate) needs: Vec<String>,
    /// The image that contains it; `None` for the host.
    pub(crate) image: Option<ImageName>,
    /// The command that installs it, for error messages.
    pub(crate) install: Option<String>,
    /// What `runtimes --install` installs.
    #[serde(default)]
    pub(crate) installer: Installer,
}

/// How to read a version: the first token that looks like one.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct VersionRule {
    pub(crate) args: Vec<String>,
    /// Search only after this text.
    pub(crate) after: Option<String>,
}

/// Packages that provide a toolchain, by package manager.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Installer {
    /// Of Debian and its relatives.
    #[serde(default)]
    pub apt: Vec<String>,
    /// Of the Python package index.
    #[serde(default)]
    pub pip: Vec<String>,
    /// Of the npm registry.
    #[serde(default)]
    pub npm: Vec<String>,
}
