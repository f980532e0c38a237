//! The isolation backends of sandbox-run, behind [`sandbox_core::Backend`].

pub mod native;

pub mod docker;
pub mod oci;

mod container;
mod error;
mod image;
mod missing;
mod process;
mod process_tree;
mod seccomp;
mod shared_directory;
mod supervise;
mod workspace;

/// The format in which the content of a workspace is stored.
pub use sandbox_linux::snapshot;

pub use sandbox_linux::{close_others_on_exec, release_free_memory};
pub use seccomp::{seccomp_for_docker, seccomp_for_oci};
