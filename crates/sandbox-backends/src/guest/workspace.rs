//! The workspace of a program in a container.

use std::path::Path;

use sandbox_core::{BackendError, Ending, StageOutcome, StagePlan, WorkspaceOutcome, with_causes};
use sandbox_linux::attach::Detached;
use sandbox_linux::workspace::Workspace;

use super::Container;
use crate::failed;
use crate::native::workspace::{keep, order};

/// Where it is seen.
pub(crate) const WORK: &str = "/work";

/// A workspace on its way into a container.
pub(crate) struct Made {
    pub(crate) workspace: Workspace,
    pub(crate) mount: Detached,
    /// Whether what was kept is in it. Otherwise there was not memory enough for that.
    pub(crate) is_filled: bool,
}

/// Makes that of a plan, if it has one, with everything in it that was kept.
pub(crate) fn make(
    plan: &StagePlan,
    container: &dyn Container,
) -> Result<Option<Made>, BackendError> {
    let (Some(order), Some(asked)) = (order(plan)?, &plan.workspace) else {
        return Ok(None);
    };
    let made = Workspace::make(order.bytes, order.inodes, container.program_id());
    let (workspace, mount) =
        made.map_err(|error| failed("make the workspace", with_causes(&error)))?;
    let is_filled = match &asked.content {
        Some(content) => {
            let entry = container.cgroup().entry();
            let entry = entry.map_err(|error| failed("enter a cgroup", error))?;
            let filled = workspace.fill(content, &entry);
            filled.map_err(|error| failed("fill the workspace", error))?
        }
        None => true,
    };
    Ok(Some(Made { workspace, mount, is_filled }))
}

/// Where a volume lies in a workspace, if it does.
pub(crate) fn below(volume: &Path) -> Option<&Path> {
    volume.strip_prefix(WORK).ok()
}

/// Keeps what a program left in it, and says so.
pub(crate) fn conclude(
    workspace: &Workspace,
    plan: &StagePlan,
    outcome: StageOutcome,
) -> Result<StageOutcome, BackendError> {
    let kept = keep(workspace.directory(), plan, outcome.ending)?;
    let is_refused = |kept: &WorkspaceOutcome| kept.refusal.is_some();
    let ending = match &kept {
        Some(kept) if is_refused(kept) => Ending::TooMuchForWorkspace,
        _ => outcome.ending,
    };
    Ok(StageOutcome { ending, workspace: kept, ..outcome })
}
