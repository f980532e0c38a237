use serde::Deserialize;

use super::values::{ImageName, MinVersion, Programs};

/// Where the interpreter or compiler is, and how it tells its version.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Toolchain {
    /// Names, paths or patterns, the preferred one first.
    pub(crate) programs: Programs,
    pub(crate) version: VersionRule,
    /// Older versions are not used.
    pub(crate) least: Option<MinVersion>,
    /// Arguments that make a program found on `PATH` print where it really is: its own path or its
    /// root directory. Shims and proxies answer with what they stand for.
    pub(crate) real: Option<Vec<String>>,
    /// Further files of the host that must be visible inside, if they are there.
    #[serde(default)]
    pub(crate) shows: Vec<String>,
    /// Further programs without which it does not work.
    #[serde(default)]
    pub(crate) needs: Vec<String>,
    /// The image that it is in; the host's own is used if nothing is said.
    pub(crate) image: Option<ImageName>,
    /// What a person types to get it.
    pub(crate) install: Option<String>,
    /// What `runtimes --install` does to get it.
    #[serde(default)]
    pub(crate) installer: Installer,
}

/// How to read a version: the first token that looks like one.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct VersionRule {
    pub(crate) args: Vec<String>,
    /// Look only behind this text.
    pub(crate) after: Option<String>,
}

/// Packages that bring a toolchain, by package manager.
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
