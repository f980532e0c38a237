use std::fmt;
use std::path::PathBuf;

/// Where the value of a setting came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Nobody set it.
    Default,
    /// This line of the configuration file.
    File {
        /// Which file.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
    },
    /// This variable of the environment.
    Variable(String),
    /// This flag.
    Flag(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, line } => write!(f, "{}, line {line}", path.display()),
            Self::Variable(name) => f.write_str(name),
            Self::Flag(flag) => f.write_str(flag),
        }
    }
}
