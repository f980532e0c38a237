use std::path::PathBuf;

use serde::Deserialize;

/// A language of a server. What the server does not disclose is empty.
#[derive(Clone, Debug, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Runtime {
    /// The name.
    pub language: String,
    /// Other names for it.
    pub aliases: Vec<String>,
    /// Extensions of its files.
    pub extensions: Vec<String>,
    /// Whether programs can run.
    pub available: bool,
    /// The version that runs by default.
    pub version: Option<String>,
    /// All available versions, the default first.
    pub versions: Vec<String>,
    /// The interpreter or compiler.
    pub program: Option<PathBuf>,
    /// The image that it runs in, if any.
    pub image: Option<String>,
    /// Why it is not available.
    pub missing: Option<String>,
    /// How to install it.
    pub install: Option<String>,
    /// Directories with packages of the server's host, which programs can import.
    pub host_packages: Vec<PathBuf>,
}

impl Default for Runtime {
    fn default() -> Self {
        Self {
            language: String::new(),
            aliases: Vec::new(),
            extensions: Vec::new(),
            available: true,
            version: None,
            versions: Vec::new(),
            program: None,
            image: None,
            missing: None,
            install: None,
            host_packages: Vec::new(),
        }
    }
}

/// The list by itself, or as a field beside which others can be added.
#[derive(Deserialize)]
#[serde(untagged)]
pub(crate) enum RuntimeList {
    Bare(Vec<Runtime>),
    Named { runtimes: Vec<Runtime> },
}

impl RuntimeList {
    pub(crate) fn into_vec(self) -> Vec<Runtime> {
        let (Self::Bare(runtimes) | Self::Named { runtimes }) = self;
        runtimes
    }
}
