use std::io;
use std::path::PathBuf;

use super::layers::Source;
use super::setting;

/// An error in the configuration.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigError {
    /// The named file does not exist or cannot be read.
    #[error("cannot read the configuration file {}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        cause: io::Error,
    },
    /// A file in a default location that another user could have written.
    #[error(
        "refusing to read {}: {reason}; change its owner or mode (chown, chmod go-w), or name it with \
         --config",
        path.display()
    )]
    Untrusted {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// The file is not valid TOML.
    #[error("{}, line {line}: {reason}", path.display())]
    NotToml {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The parser's message.
        reason: String,
    },
    /// A key or variable that names no setting.
    #[error("{set_by}: unknown setting '{name}'; the settings are: {}", setting::names())]
    Unknown {
        /// The source that sets it.
        set_by: Source,
        /// The unknown name.
        name: String,
    },
    /// An invalid value.
    #[error("{name} ({set_by}): {reason}")]
    Invalid {
        /// The source that sets it.
        set_by: Source,
        /// The setting.
        name: &'static str,
        /// The reason.
        reason: String,
    },
    /// A file that a setting names is invalid.
    #[error("{name}: {}: {reason}", path.display())]
    InFile {
        /// The setting.
        name: &'static str,
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
}
