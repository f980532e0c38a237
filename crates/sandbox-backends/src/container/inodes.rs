//! Gives a container inodes of its own in place of the host's that its runtime mounts.

use std::path::{Path, PathBuf};

use sandbox_core::{BackendError, MissingProtection, Protection, SandboxSpec};
use sandbox_linux::container_inodes::{self, SharedInodes, Shown};

use super::ContainerSpec;
use crate::error::failed;

/// The step in error messages.
const STEP: &str = "give the container inodes of its own";

/// What a runtime mounts in each container, and what is needed to cover that.
pub(crate) struct InodeCover<'a> {
    /// Host paths that are mounted at the same path.
    pub(crate) shown: &'a [PathBuf],
    /// An empty directory on the host.
    pub(crate) empty: &'a Path,
    /// The agent's executable inside. It runs already and is not executed again.
    pub(crate) agent: &'static [&'static str],
    /// Files on a host file system that the runtime creates for each container.
    pub(crate) own: &'a [&'a str],
}

impl InodeCover<'_> {
    /// Covers the mounts of a container in which only the agent runs. Returns what is still shared.
    pub(crate) fn apply(
        &self,
        process: u32,
        spec: &ContainerSpec,
    ) -> Result<SharedInodes, BackendError> {
        let same = self.shown.iter().map(|path| Shown { host: path.clone(), inside: path.clone() });
        let trees = spec.shown_trees();
        let trees = trees.map(|(host, inside)| Shown { host: host.to_owned(), inside });
        let mut shown: Vec<Shown> = same.chain(trees).collect();
        // Parents before children.
        shown.sort_by(|left, right| left.inside.cmp(&right.inside));
        let covered = container_inodes::cover(process, &shown, self.empty, self.agent);
        covered.map_err(|error| failed(STEP, error))?;
        // A volume replaces its placeholder later.
        let places = spec.places.iter().map(|place| place.path.clone());
        let own: Vec<PathBuf> = self.own.iter().map(PathBuf::from).chain(places).collect();
        let shared = container_inodes::shared_with_host(process, &own);
        shared.map_err(|error| failed(STEP, error))
    }
}

/// Refuses a sandbox that does not allow its container to share directories with the host.
pub(crate) fn check(shared: &SharedInodes, sandbox: &SandboxSpec) -> Result<(), BackendError> {
    let protection = Protection::PrivateInodes;
    let Some(directory) = shared.directories.first() else { return Ok(()) };
    if sandbox.allow_missing.contains(&protection) {
        return Ok(());
    }
    Err(BackendError::CannotEnforce(MissingProtection {
        protection,
        reason: format!("the container shows the host's own inodes at {}", directory.display()),
        remedy: "use --isolation native".to_owned(),
    }))
}

/// Whether a protection is in force although the container shares these inodes.
pub(crate) fn leaves(shared: &SharedInodes, protection: Protection) -> bool {
    match protection {
        Protection::PrivateInodes => shared.directories.is_empty(),
        Protection::PrivateFileInodes => shared.directories.is_empty() && shared.files.is_empty(),
        _ => true,
    }
}
