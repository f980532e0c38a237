//! The backends of sandbox-run, one module each, behind [`sandbox_core::Backend`].

pub mod native;

pub mod docker;
mod guest;
pub mod oci;
mod seccomp;

use sandbox_core::BackendError;

/// How the content of a workspace is kept.
pub use sandbox_linux::snapshot;

pub use sandbox_linux::close_others_on_exec;
pub use seccomp::{seccomp_for_docker, seccomp_for_oci};

/// Our failure at a step.
fn failed(step: &str, cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> BackendError {
    BackendError::Failed { step: step.to_owned(), cause: cause.into() }
}
