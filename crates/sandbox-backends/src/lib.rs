//! The backends of sandbox-run, one module each, behind [`sandbox_core::Backend`].

pub mod native;

pub mod docker;
mod guest;
mod lock_limit;
pub mod oci;
mod seccomp;
mod shared_place;

use std::path::Path;

use sandbox_core::{BackendError, MissingProtection, Protection};
use sandbox_linux::skeleton::Skeleton;
use sandbox_linux::{landlock, private_root};

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

/// What a kernel with this version of Landlock lacks of it.
fn missing_landlock(version: u32) -> Vec<MissingProtection> {
    let missing = landlock::missing_from(version).map(|part| {
        let reason = match version {
            0 => "the kernel has no Landlock".to_owned(),
            _ => format!(
                "the kernel's Landlock has version {version}, and this needs {}",
                part.version
            ),
        };
        let remedy = match part.instead {
            None => format!("use Linux {} or later with landlock in the lsm= list", part.kernel),
            Some(instead) => format!(
                "use Linux {} or later; executions go on without it, behind {instead}",
                part.kernel
            ),
        };
        MissingProtection { protection: part.protection, reason, remedy }
    });
    missing.collect()
}

/// Inodes of a sandbox's own, where this host's kernel cannot give them.
fn missing_private_inodes() -> Option<MissingProtection> {
    (!private_root::is_available()).then(|| MissingProtection {
        protection: Protection::PrivateInodes,
        reason: "the kernel has no overlay file system".to_owned(),
        remedy: "load it with modprobe overlay; ordinary users need Linux 5.11".to_owned(),
    })
}

/// Our failure at a step.
fn failed(step: &str, cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> BackendError {
    BackendError::Failed { step: step.to_owned(), cause: cause.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_landlock_lacks_is_named_with_the_kernel_that_has_it() {
        let lines = |version| {
            let missing = missing_landlock(version).into_iter();
            let line = |missing: MissingProtection| {
                format!("{}: {}; {}", missing.protection, missing.reason, missing.remedy)
            };
            missing.map(line).collect::<Vec<_>>()
        };
        assert!(lines(6).is_empty());
        assert_eq!(lines(5).len(), 1);
        assert!(lines(5)[0].starts_with("landlock-scope: the kernel's Landlock has version 5, "));
        assert!(lines(5)[0].contains("Linux 6.12 or later; executions go on"), "{:?}", lines(5));
        assert_eq!(lines(2).len(), 3);
        assert!(lines(0)[0].starts_with("landlock: the kernel has no Landlock; use Linux 5.13"));
    }
}
