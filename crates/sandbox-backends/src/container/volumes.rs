//! Volumes and the workspace of a container: it is created with a mount point for each, and they
//! are mounted when the program arrives.

use std::path::PathBuf;

use sandbox_core::{BackendError, SandboxSpec, Volume, VolumeAccess, with_causes};
use sandbox_linux::attach;
use sandbox_linux::workspace::Workspace;

use super::Container;
use super::workspace::{PreparedWorkspace, WORK, below};
use crate::error::failed;

/// The step in error messages.
const ATTACH: &str = "attach the volumes and the workspace";

/// Where a volume will be mounted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MountPoint {
    pub(crate) path: PathBuf,
    pub(crate) is_directory: bool,
}

impl MountPoint {
    pub(crate) fn of(volume: &Volume) -> Result<Self, BackendError> {
        let path = volume.destination().to_owned();
        if path.to_str().is_none() {
            return Err(BackendError::Refused("a volume's place is not plain text".into()));
        }
        Ok(Self { path, is_directory: volume.host().is_dir() })
    }
}

/// Mounts the workspace and the volumes of a plan into a container in which only the agent runs.
pub(crate) fn attach(
    sandbox: &SandboxSpec,
    made: Option<PreparedWorkspace>,
    container: &dyn Container,
) -> Result<Option<Workspace>, BackendError> {
    if sandbox.volumes.is_empty() && made.is_none() {
        return Ok(None);
    }
    let agent = container.agent();
    let agent = agent.ok_or_else(|| failed(ATTACH, "its agent is not known"))?;
    let mut mounts = Vec::new();
    // The workspace first: volumes may be mounted inside it.
    let workspace = made.map(|made| {
        mounts.push((made.mount, PathBuf::from(WORK)));
        made.workspace
    });
    for volume in &sandbox.volumes {
        let writable = volume.access() == VolumeAccess::ReadWrite;
        let detached = attach::detached(volume.host(), writable, container.program_id());
        let detached = detached.map_err(|error| {
            let chain = with_causes(&error);
            BackendError::Refused(format!("the volume {}: {chain}", volume.host().display()))
        })?;
        if let (Some(workspace), Some(below)) = (&workspace, below(volume.destination())) {
            // The workspace hides the container's own mount point.
            let made = workspace.make_place(below, volume.host().is_dir());
            made.map_err(|error| failed(ATTACH, error))?;
        }
        mounts.push((detached, volume.destination().to_owned()));
    }
    let attached = attach::attach(agent, mounts);
    attached.map_err(|error| failed(ATTACH, error))?;
    Ok(workspace)
}
