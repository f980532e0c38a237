//! Workspaces: named directories that outlive executions.
//!
//! What is kept of a workspace is one file that belongs to the user and that no program ever sees. An
//! execution gets a copy of it in its work directory, on a file system as large as the workspace may be;
//! when the program has ended by itself and every process is dead, what it left is written to another
//! file, which then takes the place of the first by one rename. So a crash leaves the old content or the
//! new one, readers never wait for a writer, and a writer never waits for readers.
//!
//! ```text
//! content/NAME         what is kept
//! locks/NAME           lock of the writer; its time is the time of the last use
//! temporary/NAME:…     content being written; other files of this name are abandoned
//! owners/abcdef…/      the same for each owner, where one process serves several
//! ```

mod claim;
mod directory;
mod error;
mod lock;
mod settings;
mod tar_export;
mod tar_import;
mod workspaces;

pub(crate) use claim::Claim;
pub use error::{TarError, WorkspaceError};
pub use workspaces::{Workspace, Workspaces};
