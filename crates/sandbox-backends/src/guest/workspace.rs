//! The workspace of a program in a container.

use std::fs::File;
use std::path::Path;

use sandbox_core::{BackendError, Ending, StageOutcome, StagePlan, with_causes};
use sandbox_linux::attach::Detached;
use sandbox_linux::cgroup::Cgroup;
use sandbox_linux::workspace::Workspace;

use super::Container;
use crate::failed;
use crate::native::supervise::BUILD_TIME;
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
        Some(content) => fill(&workspace, content, container.cgroup())?,
        None => true,
    };
    Ok(Some(Made { workspace, mount, is_filled }))
}

/// False if there was not memory enough.
fn fill(workspace: &Workspace, content: &File, cgroup: &dyn Cgroup) -> Result<bool, BackendError> {
    let entry = cgroup.entry().map_err(|error| failed("enter a cgroup", error))?;
    let filled = workspace.fill(content, &entry, BUILD_TIME);
    if filled.map_err(|error| failed("fill the workspace", error))? {
        return Ok(true);
    }
    let kills = cgroup.oom_kills().map_err(|error| failed("read why it ended", error))?;
    if kills == 0 {
        return Err(failed("fill the workspace", "somebody ended the process that does"));
    }
    Ok(false)
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
    let is_refused = kept.as_ref().is_some_and(|kept| kept.refusal.is_some());
    let ending = if is_refused { Ending::TooMuchForWorkspace } else { outcome.ending };
    Ok(StageOutcome { ending, workspace: kept, ..outcome })
}
