//! Inodes of a container's own, in place of the host's that its builder shows.

use std::path::{Path, PathBuf};

use sandbox_core::{BackendError, MissingProtection, Protection, StagePlan};
use sandbox_linux::container_inodes::{self, SharedInodes, Shown};

use super::Purpose;
use crate::failed;

/// What fails, in a report.
const STEP: &str = "give the container inodes of its own";

/// What a builder of containers shows in each, and what it needs to cover that.
pub(crate) struct InodeCover<'a> {
    /// Host paths shown at the same place.
    pub(crate) shown: &'a [PathBuf],
    /// A directory on the host with nothing in it.
    pub(crate) empty: &'a Path,
    /// Where the agent's program is inside. It runs already, and is not started again.
    pub(crate) agent: &'static [&'static str],
    /// Files that the builder makes for each container, on a file system of the host.
    pub(crate) own: &'a [&'a str],
}

impl InodeCover<'_> {
    /// Covers what a container shows in which only its agent runs. Tells what is left to share.
    pub(crate) fn apply(
        &self,
        process: u32,
        purpose: &Purpose,
    ) -> Result<SharedInodes, BackendError> {
        let same = self.shown.iter().map(|path| Shown { host: path.clone(), inside: path.clone() });
        let trees = purpose.shown_trees();
        let trees = trees.map(|(host, inside)| Shown { host: host.to_owned(), inside });
        let mut shown: Vec<Shown> = same.chain(trees).collect();
        // What lies in another comes after it.
        shown.sort_by(|left, right| left.inside.cmp(&right.inside));
        let covered = container_inodes::cover(process, &shown, self.empty, self.agent);
        covered.map_err(|error| failed(STEP, error))?;
        // A volume goes over what is there until it comes.
        let places = purpose.places.iter().map(|place| place.path.clone());
        let own: Vec<PathBuf> = self.own.iter().map(PathBuf::from).chain(places).collect();
        let shared = container_inodes::shared_with_host(process, &own);
        shared.map_err(|error| failed(STEP, error))
    }
}

/// Refuses a plan that does not allow for directories that its container has in common with the host.
pub(crate) fn check(shared: &SharedInodes, plan: &StagePlan) -> Result<(), BackendError> {
    let protection = Protection::PrivateInodes;
    let Some(directory) = shared.directories.first() else { return Ok(()) };
    if plan.allow_missing.contains(&protection) {
        return Ok(());
    }
    Err(BackendError::CannotEnforce(MissingProtection {
        protection,
        reason: format!("the container shows the host's own inodes at {}", directory.display()),
        remedy: "use --isolation native".to_owned(),
    }))
}

/// Whether what a container shares leaves a protection in force.
pub(crate) fn leaves(shared: &SharedInodes, protection: Protection) -> bool {
    match protection {
        Protection::PrivateInodes => shared.directories.is_empty(),
        Protection::PrivateFileInodes => shared.directories.is_empty() && shared.files.is_empty(),
        _ => true,
    }
}
