use std::io;
use std::path::{Path, PathBuf};

/// Why an operation on the store failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// An environment variable has an invalid value.
    #[error("{variable} cannot be used: {reason}")]
    Setting {
        /// Its name.
        variable: &'static str,
        /// Why it is invalid.
        reason: String,
    },
    /// No environment variable names a directory for the store.
    #[error(
        "no directory for the store: neither XDG_CACHE_HOME nor HOME is an absolute path; \
         set SANDBOX_RUN_STORE to a directory"
    )]
    NoDirectory,
    /// Another user owns the store and could put programs into it.
    #[error(
        "the store in {} belongs to user {owner}, not to user {user}: \
         set SANDBOX_RUN_STORE to a directory of your own",
        path.display()
    )]
    Foreign {
        /// The directory.
        path: PathBuf,
        /// Its owner.
        owner: u32,
        /// The user of this process.
        user: u32,
    },
    /// Other users can write to the store.
    #[error(
        "others can write to the store in {} (its mode is {mode:03o}): set SANDBOX_RUN_STORE to \
         a directory of your own, or empty this one and do 'chmod 700' to it",
        path.display()
    )]
    WritableByOthers {
        /// The directory.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// An entry of the store is damaged.
    #[error("{} is damaged: {reason}", path.display())]
    Damaged {
        /// Its path.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// An I/O error.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// The operation.
        action: &'static str,
        /// The path.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

impl StoreError {
    /// Adds the operation and the path to an I/O error.
    pub(super) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { action, path: path.to_owned(), source }
    }

    pub(super) fn damaged(path: &Path, reason: impl Into<String>) -> Self {
        Self::Damaged { path: path.to_owned(), reason: reason.into() }
    }
}
