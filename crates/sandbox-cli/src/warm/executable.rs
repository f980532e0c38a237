use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;

use serde::{Deserialize, Serialize};

/// Which executable a process is: a newer one of the same name is another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Executable {
    pub(super) version: String,
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
}

/// The file of this process, also when another one has taken its name.
pub(super) const OWN: &str = "/proc/self/exe";

impl Executable {
    /// What this process is. The time of change is left out: losing its name changes a file.
    pub(super) fn own() -> io::Result<Self> {
        let file = fs::metadata(OWN)?;
        Ok(Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            device: file.dev(),
            inode: file.ino(),
            size: file.size(),
            modified: (file.mtime(), file.mtime_nsec()),
        })
    }
}
