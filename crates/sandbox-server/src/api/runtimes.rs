use axum::Json as Answer;
use axum::extract::State;
use sandbox::RuntimeStatus;
use sandbox_api::{Code, Problem};
use serde::Serialize;
use utoipa::ToSchema;

use super::caller::{Caller, Read};
use super::query::Query;
use super::refusal::Refusal;
use crate::state::AppState;

/// A language.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct RuntimeEntry {
    #[schema(example = "python")]
    language: String,
    /// Other names for it.
    aliases: Vec<String>,
    /// Extensions of its files.
    extensions: Vec<String>,
    /// Whether it can be used.
    available: bool,
    /// The version that runs by default.
    version: Option<String>,
    /// Every version there is, the default first.
    versions: Vec<String>,
    /// The image that it is in, if it is not on the server's own host.
    #[serde(skip_serializing_if = "Option::is_none")]
    image: Option<String>,
    /// Why it cannot be used, if it cannot.
    missing: Option<String>,
    /// How the server's owner gets it.
    install: Option<String>,
}

/// The languages.
#[utoipa::path(
    get,
    path = "/api/v1/runtimes",
    tag = "server",
    operation_id = "runtimes",
    responses((status = 200, description = "All languages, also those that are not installed", body = Vec<RuntimeEntry>))
)]
pub(super) async fn list(
    State(state): State<AppState>,
    _caller: Caller<Read>,
    query: Query,
) -> Result<Answer<Vec<RuntimeEntry>>, Refusal> {
    query.end()?;
    // The first to ask waits until every toolchain has told its version.
    let probed =
        tokio::task::spawn_blocking(move || state.sandboxes.preferred().runtimes().probe_all())
            .await;
    let probed = probed.map_err(|error| {
        tracing::error!(%error, "looking for toolchains failed");
        Problem::new(Code::Internal, "the languages could not be looked for")
    })?;
    Ok(Answer(probed.into_iter().map(RuntimeEntry::from).collect()))
}

impl From<RuntimeStatus> for RuntimeEntry {
    fn from(status: RuntimeStatus) -> Self {
        Self {
            language: status.name,
            aliases: status.aliases,
            extensions: status.extensions,
            available: status.missing.is_none(),
            version: status.version,
            versions: status.versions,
            image: status.image,
            missing: status.missing,
            install: status.install,
        }
    }
}
