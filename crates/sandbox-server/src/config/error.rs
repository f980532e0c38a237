use std::io;
use std::path::PathBuf;

use super::origin::Origin;
use super::setting;

/// What is wrong with the configuration. Whoever wrote it can put it right.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigError {
    /// The file that was named is not there, or cannot be read.
    #[error("cannot read the configuration file {}", path.display())]
    Unreadable {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        #[source]
        cause: io::Error,
    },
    /// A file that nobody named, and that somebody else could have written.
    #[error(
        "{} is not read, because {reason}: make it your own and only yours to write, or name it with \
         --config",
        path.display()
    )]
    Untrusted {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The file is not TOML.
    #[error("{}, line {line}: {reason}", path.display())]
    NotToml {
        /// Which file.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        /// What the parser said.
        reason: String,
    },
    /// A key or variable that is no setting's.
    #[error("{origin}: there is no setting '{name}'; the settings are: {}", setting::names())]
    Unknown {
        /// Where it was said.
        origin: Origin,
        /// What was said.
        name: String,
    },
    /// A value that the setting cannot have.
    #[error("{name} ({origin}): {reason}")]
    Invalid {
        /// Where it was said.
        origin: Origin,
        /// Which setting.
        name: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// A file that a setting names is not what it should be.
    #[error("{name}: {}: {reason}", path.display())]
    InFile {
        /// Which setting.
        name: &'static str,
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
}
