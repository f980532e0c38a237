//! The backends of sandbox-run, one module each, behind [`sandbox_core::Backend`].

pub mod native;

pub mod docker;
mod guest;
pub mod oci;
mod seccomp;
mod shared_place;

use std::path::Path;

use sandbox_core::{BackendError, MissingProtection, Protection};
use sandbox_linux::landlock;
use sandbox_linux::skeleton::Skeleton;

/// How the content of a workspace is kept.
pub use sandbox_linux::snapshot;

pub use sandbox_linux::{close_others_on_exec, release_free_memory};
pub use seccomp::{seccomp_for_docker, seccomp_for_oci};

/// What an unpacked image gives to a root, or why it cannot be one. The reason is for people.
fn look_at_image(directory: &Path) -> Result<Skeleton, BackendError> {
    let refused = |reason: &str| {
        BackendError::Refused(format!("the image cannot be the root of a sandbox: {reason}"))
    };
    if directory.to_str().is_none() {
        return Err(refused("the path to it is not plain text"));
    }
    Skeleton::of_image(directory).map_err(|error| refused(&error.to_string()))
}

/// Landlock, where this host's kernel does not have it.
fn missing_landlock() -> Option<MissingProtection> {
    (landlock::version() == 0).then(|| MissingProtection {
        protection: Protection::Landlock,
        reason: "the kernel has no Landlock".to_owned(),
        remedy: "use Linux 5.13 or later with landlock in the lsm= list".to_owned(),
    })
}

/// Our failure at a step.
fn failed(step: &str, cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> BackendError {
    BackendError::Failed { step: step.to_owned(), cause: cause.into() }
}
