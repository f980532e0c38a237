//! The backends of sandbox-run, one module each, behind [`sandbox_core::Backend`].

pub mod native;

/// How the content of a workspace is kept.
pub use sandbox_linux::snapshot;

pub use sandbox_linux::close_others_on_exec;
