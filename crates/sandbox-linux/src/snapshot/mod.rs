//! A directory as one file: how the content of a workspace is kept between executions.
//!
//! It is one file so that it can be replaced by one rename, and so that no name a program chose is ever
//! made on the host. It holds directories, regular files and symbolic links, the last as data: nothing
//! here ever follows one. `take` writes such a file from a directory that a hostile program filled,
//! `lay_out` fills the work directory of a fresh sandbox from it, from inside.

mod format;
mod lay_out;
mod take;

pub use format::{Entry, Kind, MAX_PATH_LEN, SnapshotReader, SnapshotSize, SnapshotWriter};
pub(crate) use lay_out::lay_out;
pub use take::{Taken, take};

/// Directories deeper than this are not kept: each level holds a descriptor while it is walked.
pub const DEEPEST: usize = 64;
