//! A directory as one file: the format in which the content of a workspace is saved.
//!
//! One file can be replaced by one rename, and no name that a program chose is ever created on the
//! host. It contains directories, regular files and symbolic links, the latter as data: nothing
//! here follows one. `take` creates such a file from a directory that a hostile program filled;
//! `restore` fills the work directory of a fresh sandbox from it, from inside.

mod format;
mod restore;
mod take;

pub use format::{Entry, Kind, MAX_PATH_LEN, SnapshotReader, SnapshotSize, SnapshotWriter};
pub(crate) use restore::restore;
pub use take::{Taken, take};

/// Deeper directories are not saved: each level holds a descriptor open.
pub const MAX_DEPTH: usize = 64;
