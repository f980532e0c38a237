use std::io;
use std::path::PathBuf;

use sandbox_core::{BackendError, EnvironmentName, PackageSpec};

use crate::ResolveError;
use crate::store::StoreError;

/// Why packages could not be installed. All but the internal errors can be fixed by the requester.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PackageError {
    /// The recipe of the language names no package manager.
    #[error("packages are not supported for {language}: its recipe names no package manager")]
    NoManager {
        /// The language.
        language: String,
    },
    /// The package manager is not installed.
    #[error("{manager} for {language} is not installed on this host; install it with: {install}")]
    ManagerMissing {
        /// The package manager.
        manager: &'static str,
        /// The language.
        language: String,
        /// The command that installs it.
        install: &'static str,
    },
    /// A package specification is invalid for the package manager.
    #[error("'{spec}' is not a valid package for {manager}: write {example}")]
    Spec {
        /// The specification.
        spec: PackageSpec,
        /// The package manager.
        manager: &'static str,
        /// Valid examples.
        example: &'static str,
    },
    /// The package manager failed; this is its error message.
    #[error("the packages cannot be installed: {0}")]
    Refused(String),
    /// The build exceeded a limit.
    #[error("building the packages exceeded a limit: {0}")]
    Limit(String),
    /// The index no longer serves the locked files.
    #[error("the package index no longer has the locked files ({0}); build the environment again")]
    Changed(String),
    /// The build was cancelled.
    #[error("building the packages was cancelled")]
    Cancelled,
    /// No environment has this name.
    #[error("there is no environment '{0}': 'sandbox-run env build' makes one")]
    NoSuchEnvironment(EnvironmentName),
    /// The environment was built for another runtime.
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
    /// The language is unknown or not available on this host.
    #[error(transparent)]
    Language(#[from] ResolveError),
    /// The settings of the package manager could not be read.
    #[error("cannot read the settings of {manager}: {reason}")]
    Settings {
        /// The manager.
        manager: &'static str,
        /// What failed.
        reason: String,
    },
    /// A file of the user could not be read or written.
    #[error("cannot {action} {}", path.display())]
    File {
        /// The operation.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The store is not available.
    #[error("the store for packages is not available: {0}")]
    NoStore(String),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The sandbox for the build failed.
    #[error("the packages cannot be built")]
    Backend(#[from] BackendError),
}

impl PackageError {
    /// Whether this is an internal error or an error of the host, which no other request would avoid.
    pub fn is_internal(&self) -> bool {
        matches!(self, Self::File { .. } | Self::NoStore(_) | Self::Store(_) | Self::Backend(_))
    }

    /// Adds the operation and the path to an I/O error.
    pub(super) fn file(
        action: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::File { action, path: path.into(), source }
    }
}
