//! The workspaces of clients.

use sandbox::{Request, Sandbox, WorkspaceError, Workspaces, with_causes};
use sandbox_api::{Code, Problem};

use crate::config::Config;

/// The workspaces of this server.
pub(crate) fn of_server(config: &Config) -> Workspaces {
    Workspaces::in_directory(&config.data_dir.join("workspaces"))
        .with_quota(sandbox::WorkspaceQuota::of(config.workspace_size))
        .with_max_count(config.workspaces_per_key)
}

/// The name under which the library knows a client. All clients without a key are one owner.
pub(crate) fn owner(key: Option<&str>) -> String {
    key.map_or_else(|| "nobody".to_owned(), |key| format!("key:{key}"))
}

/// Refuses a request whose workspace cannot be used, as far as that is known before the execution starts.
pub(super) fn check(sandbox: &Sandbox, request: &Request) -> Result<(), Problem> {
    let Some(choice) = request.workspace() else {
        return Ok(());
    };
    let all = sandbox.workspaces().map_err(|error| problem(&error))?;
    let own = all.of_owner(request.workspaces_of().unwrap_or_default());
    own.check(choice).map_err(|error| problem(&error))
}

/// The problem that a client is told of when an operation on its workspace fails.
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
