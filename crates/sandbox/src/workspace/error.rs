use std::io;
use std::path::{Path, PathBuf};

use sandbox_core::{InvalidSize, WorkspaceName, WorkspaceQuota};

/// Why an operation on a workspace failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkspaceError {
    /// No workspace has this name.
    #[error("there is no workspace '{0}': using it without :ro makes it")]
    NoSuchWorkspace(WorkspaceName),
    /// Another execution holds it for writing.
    #[error(
        "the workspace '{0}' is in use by another execution: wait for its end, or use it as '{0}:ro'"
    )]
    InUse(WorkspaceName),
    /// The owner has the maximum number of workspaces.
    #[error("there are {0} workspaces already, which is as many as there may be: remove one first")]
    TooMany(u64),
    /// The archive cannot be imported.
    #[error("the archive cannot be taken")]
    Tar(#[from] TarError),
    /// No environment variable names a directory for workspaces.
    #[error(
        "no directory for workspaces: neither XDG_DATA_HOME nor HOME is an absolute path; \
         set SANDBOX_RUN_WORKSPACES to a directory"
    )]
    NoDirectory,
    /// `SANDBOX_RUN_WORKSPACES` is a relative path.
    #[error("SANDBOX_RUN_WORKSPACES cannot be used: '{0}' is not an absolute path")]
    RelativeDirectory(String),
    /// `SANDBOX_RUN_WORKSPACE_SIZE` is not a size.
    #[error("SANDBOX_RUN_WORKSPACE_SIZE cannot be used")]
    Size(#[source] InvalidSize),
    /// Other users can access the workspaces.
    #[error(
        "the workspaces in {} are not yours alone: set SANDBOX_RUN_WORKSPACES to a directory of your \
         own with mode 700",
        .0.display()
    )]
    NotPrivate(PathBuf),
    /// The file system next no.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// The operation.
        action: &'static str,
        /// The path.
        path: PathBuf,
        /// What it next.
        source: io::Error,
    },
}

/// Why an archive cannot be imported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TarError {
    /// An entry is not supported.
    #[error("'{path}' in it {reason}")]
    Entry {
        /// The path of the entry, printable.
        path: String,
        /// Why it is refused.
        reason: &'static str,
    },
    /// The contents exceed the quota.
    #[error("it holds more than {0}")]
    TooLarge(WorkspaceQuota),
    /// It is not a valid tar archive.
    #[error("it cannot be read as a tar archive")]
    Unreadable(#[source] io::Error),
}

impl WorkspaceError {
    /// Whether this is an internal error or an error of the host, which no other request would avoid.
    pub fn is_internal(&self) -> bool {
        matches!(self, Self::Io { .. } | Self::NotPrivate(_))
    }

    /// Adds the operation and the path to an I/O error.
    pub(super) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { action, path: path.to_owned(), source }
    }
}
