//! The workspace of a container.

use std::fs::File;
use std::path::Path;

use sandbox_core::{BackendError, StagePlan, with_causes};
use sandbox_linux::attach::Detached;
use sandbox_linux::cgroup::Cgroup;
use sandbox_linux::workspace::Workspace;

use super::Container;
use crate::error::failed;
use crate::supervise::BUILD_TIMEOUT;
use crate::workspace::mount_of;

/// Where it is mounted.
pub(crate) const WORK: &str = "/work";

/// A workspace that is not mounted yet.
pub(crate) struct PreparedWorkspace {
    pub(crate) workspace: Workspace,
    pub(crate) mount: Detached,
    /// Whether the saved content was restored. Otherwise it did not fit in memory.
    pub(crate) is_filled: bool,
}

/// Creates the workspace of a plan, if it has one, and restores its content.
pub(crate) fn make(
    plan: &StagePlan,
    container: &dyn Container,
) -> Result<Option<PreparedWorkspace>, BackendError> {
    let (Some(mount), Some(asked)) = (mount_of(plan)?, &plan.sandbox.workspace) else {
        return Ok(None);
    };
    let made = Workspace::make(mount.bytes, mount.inodes, container.program_id());
    let (workspace, mount) =
        made.map_err(|error| failed("make the workspace", with_causes(&error)))?;
    let is_filled = match &asked.content {
        Some(content) => fill(&workspace, content, container.cgroup())?,
        None => true,
    };
    Ok(Some(PreparedWorkspace { workspace, mount, is_filled }))
}

/// Returns false if the content does not fit in memory.
fn fill(workspace: &Workspace, content: &File, cgroup: &dyn Cgroup) -> Result<bool, BackendError> {
    let entry = cgroup.entry().map_err(|error| failed("enter a cgroup", error))?;
    let filled = workspace.fill(content, &entry, BUILD_TIMEOUT);
    if filled.map_err(|error| failed("fill the workspace", error))? {
        return Ok(true);
    }
    let kills = cgroup.oom_kills().map_err(|error| failed("read its OOM counter", error))?;
    if kills == 0 {
        return Err(failed("fill the workspace", "the process that does was killed"));
    }
    Ok(false)
}

/// The path of a volume relative to the workspace, if it is mounted inside it.
pub(crate) fn below(volume: &Path) -> Option<&Path> {
    volume.strip_prefix(WORK).ok()
}
