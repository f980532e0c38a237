use std::io;
use std::path::{Path, PathBuf};

/// Why the store cannot be used, or could not do something.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// A variable of the environment has a value that cannot be used.
    #[error("{variable} cannot be used: {reason}")]
    Setting {
        /// Its name.
        variable: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// The environment does not say where the user's files lie.
    #[error(
        "there is no place for the store: neither XDG_CACHE_HOME nor HOME is an absolute path; \
         set SANDBOX_RUN_STORE to a directory"
    )]
    NoDirectory,
    /// Somebody else could put programs there that we would run as the user's.
    #[error(
        "the store in {} belongs to user {owner}, not to user {user}: \
         set SANDBOX_RUN_STORE to a directory of your own",
        path.display()
    )]
    Foreign {
        /// The directory.
        path: PathBuf,
        /// Whose it is.
        owner: u32,
        /// Who we are.
        user: u32,
    },
    /// Others could change what is in it, or have done so.
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
    /// Something in the store is not as it was written.
    #[error("{} is damaged: {reason}", path.display())]
    Damaged {
        /// What.
        path: PathBuf,
        /// How that shows.
        reason: String,
    },
    /// The file system said no.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// What we wanted to do.
        action: &'static str,
        /// With what.
        path: PathBuf,
        /// What it said.
        source: io::Error,
    },
}

impl StoreError {
    /// Turns an error of the file system into one that tells what was tried, and with what.
    pub(super) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { action, path: path.to_owned(), source }
    }

    pub(super) fn damaged(path: &Path, reason: impl Into<String>) -> Self {
        Self::Damaged { path: path.to_owned(), reason: reason.into() }
    }
}
