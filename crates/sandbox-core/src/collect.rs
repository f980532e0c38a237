use std::fmt;

use crate::ByteSize;
use crate::glob::Glob;

/// Which files to collect, and how many.
#[derive(Clone, Debug)]
pub struct CollectRule {
    /// Patterns; a file is collected if one of them selects it.
    pub globs: Vec<Glob>,
    /// Maximum size of all collected files together.
    pub total: ByteSize,
    /// Maximum number of collected files.
    pub count: usize,
}

/// A collected file.
#[derive(Clone, PartialEq, Eq)]
pub struct CollectedFile {
    /// Its path, relative to the work directory.
    pub path: String,
    /// Its bytes.
    pub contents: Vec<u8>,
    /// Whether its owner could execute it.
    pub executable: bool,
}

/// A file that a pattern selected and that was not collected.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct SkippedFile {
    /// Its path, made printable.
    pub path: String,
    /// Why it was not collected.
    pub reason: String,
}

impl CollectRule {
    /// Collects no files.
    pub fn nothing() -> Self {
        Self { globs: Vec::new(), total: ByteSize::bytes(0), count: 0 }
    }

    /// Whether to collect a file at this path.
    pub fn wants(&self, path: &str) -> bool {
        self.globs.iter().any(|glob| glob.names(path))
    }
}

impl fmt::Debug for CollectedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({} bytes)", self.path, self.contents.len())
    }
}
