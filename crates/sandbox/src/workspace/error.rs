use std::io;
use std::path::{Path, PathBuf};

use sandbox_core::{InvalidSize, WorkspaceName, WorkspaceQuota};

/// Why something could not be done with a workspace.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkspaceError {
    /// Nobody made it.
    #[error("there is no workspace '{0}': using it without :ro makes it")]
    NoSuchWorkspace(WorkspaceName),
    /// Another execution may replace it.
    #[error(
        "the workspace '{0}' is in use by another execution: wait for its end, or use it as '{0}:ro'"
    )]
    InUse(WorkspaceName),
    /// There are as many as there may be.
    #[error("there are {0} workspaces already, which is as many as there may be: remove one first")]
    TooMany(u64),
    /// An archive cannot become a workspace.
    #[error("the archive cannot be taken")]
    Tar(#[from] TarError),
    /// The environment does not say where the user's files lie.
    #[error(
        "there is no place for workspaces: neither XDG_DATA_HOME nor HOME is an absolute path; \
         set SANDBOX_RUN_WORKSPACES to a directory"
    )]
    NoDirectory,
    /// The place depends on where the command is started.
    #[error("SANDBOX_RUN_WORKSPACES cannot be used: '{0}' is not an absolute path")]
    RelativeDirectory(String),
    /// The size is none.
    #[error("SANDBOX_RUN_WORKSPACE_SIZE cannot be used")]
    Size(#[source] InvalidSize),
    /// Somebody else could read or change what is kept.
    #[error(
        "the workspaces in {} are not yours alone: set SANDBOX_RUN_WORKSPACES to a directory of your \
         own with mode 700",
        .0.display()
    )]
    NotPrivate(PathBuf),
    /// The file system next no.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// What we wanted to do.
        action: &'static str,
        /// With what.
        path: PathBuf,
        /// What it next.
        source: io::Error,
    },
}

/// Why an archive cannot become a workspace.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TarError {
    /// A name in it is not taken.
    #[error("'{path}' in it {reason}")]
    Entry {
        /// The name, made printable.
        path: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// It is more than a workspace may hold.
    #[error("it holds more than {0}")]
    TooLarge(WorkspaceQuota),
    /// It is no archive.
    #[error("it cannot be read as a tar archive")]
    Unreadable(#[source] io::Error),
}

impl WorkspaceError {
    /// Whether it is a failure of ours or of the machine, which no other request can cure.
    pub fn is_internal(&self) -> bool {
        matches!(self, Self::Io { .. } | Self::NotPrivate(_))
    }

    /// Turns an error of the file system into one that tells what was tried, and with what.
    pub(super) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { action, path: path.to_owned(), source }
    }
}
