//! Workspaces, of which every client has its own.

use sandbox::{Request, Sandbox, WorkspaceError, Workspaces, with_causes};
use sandbox_api::{Code, Problem};

use crate::config::Config;

/// Where this server keeps them.
pub(crate) fn of_server(config: &Config) -> Workspaces {
    Workspaces::in_directory(&config.data_dir.join("workspaces"))
        .with_quota(sandbox::WorkspaceQuota::of(config.workspace_size))
        .with_max_count(config.workspaces_per_key)
}

/// What the library calls the owner. A server without keys has one, who is nobody with a key.
pub(crate) fn owner(key: Option<&str>) -> String {
    key.map_or_else(|| "nobody".to_owned(), |key| format!("key:{key}"))
}

/// Refuses a request whose workspace cannot be had, as far as that is known before its turn.
pub(super) fn check(sandbox: &Sandbox, request: &Request) -> Result<(), Problem> {
    let Some(choice) = request.workspace() else {
        return Ok(());
    };
    let all = sandbox.workspaces().map_err(|error| problem(&error))?;
    let own = all.of_owner(request.workspaces_of().unwrap_or_default());
    own.check(choice).map_err(|error| problem(&error))
}

/// Why something cannot be done with a workspace, for its owner.
pub(crate) fn problem(error: &WorkspaceError) -> Problem {
    let code = match error {
        WorkspaceError::NoSuchWorkspace(_) => Code::NotFound,
        WorkspaceError::InUse(_) => Code::WorkspaceInUse,
        WorkspaceError::TooMany(_) => Code::WorkspaceLimit,
        WorkspaceError::Tar(sandbox::TarError::TooLarge(_)) => Code::CodeTooLarge,
        WorkspaceError::Tar(_) => Code::InvalidBody,
        _ => {
            tracing::error!(error = with_causes(error), "a workspace cannot be used");
            return Problem::new(Code::Internal, "the workspace cannot be used");
        }
    };
    Problem::new(code, with_causes(error))
}
