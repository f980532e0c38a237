use std::io;
use std::path::PathBuf;

use sandbox_core::{BackendError, EnvironmentName, PackageSpec};

use crate::ResolveError;
use crate::store::StoreError;

/// Why packages could not be had. All but the last few can be cured by whoever asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PackageError {
    /// The language has no package manager here.
    #[error("{language} has no packages: its recipe names no package manager")]
    NoManager {
        /// The language.
        language: String,
    },
    /// The package manager is not installed.
    #[error("there is no {manager} for {language} on this host; install it with: {install}")]
    ManagerMissing {
        /// Its name.
        manager: &'static str,
        /// The language.
        language: String,
        /// What a person types.
        install: &'static str,
    },
    /// A package is not written as the manager of the language writes it.
    #[error("'{spec}' is not a package for {manager}: write {example}")]
    Spec {
        /// What was written.
        spec: PackageSpec,
        /// Who would not understand it.
        manager: &'static str,
        /// What it would understand.
        example: &'static str,
    },
    /// The manager says no; this is the line in which it says why.
    #[error("the packages cannot be installed: {0}")]
    Refused(String),
    /// A build reached one of its limits.
    #[error("building the packages reached a limit: {0}")]
    Limit(String),
    /// The index has other files now than it had.
    #[error("the package index no longer has what was locked ({0}); build the environment again")]
    Changed(String),
    /// The client asked for the end.
    #[error("building the packages was cancelled")]
    Cancelled,
    /// There is no environment of that name.
    #[error("there is no environment '{0}': 'sandbox-run env build' makes one")]
    NoSuchEnvironment(EnvironmentName),
    /// An environment is for something else.
    #[error(
        "the environment '{name}' was built for {built_for}, and this is {asked}: build it again, or \
         say --lang {built_for}"
    )]
    OtherRuntime {
        /// Its name.
        name: EnvironmentName,
        /// Language and version it was built for.
        built_for: String,
        /// Language and version of the request.
        asked: String,
    },
    /// The language is not known, or not available here.
    #[error(transparent)]
    Language(#[from] ResolveError),
    /// How the host is set up could not be found out.
    #[error("{manager} does not say how it is set up: {reason}")]
    Settings {
        /// The manager.
        manager: &'static str,
        /// What happened instead.
        reason: String,
    },
    /// A file of the user's could not be read or written.
    #[error("cannot {action} {}", path.display())]
    File {
        /// What was tried.
        action: &'static str,
        /// With what.
        path: PathBuf,
        /// What the host says.
        source: io::Error,
    },
    /// There is no store to keep packages in.
    #[error("there is no place to keep packages: {0}")]
    NoStore(String),
    /// The store of layers cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The sandbox for the build failed.
    #[error("the packages cannot be built")]
    Backend(#[from] BackendError),
}

impl PackageError {
    /// Whether this is a failure of ours, or of the host, that no other request would cure.
    pub fn is_internal(&self) -> bool {
        matches!(self, Self::File { .. } | Self::NoStore(_) | Self::Store(_) | Self::Backend(_))
    }

    /// Turns an error of the file system into one that tells what was tried, and with what.
    pub(super) fn file(
        action: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::File { action, path: path.into(), source }
    }
}
