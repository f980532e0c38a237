use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use axum::{Extension, Json as Answer};
use sandbox::RuntimeStatus;
use sandbox_api::{Code, Problem};
use sandbox_scheduler::Sandboxes;
use serde::Serialize;
use tokio::sync::Mutex;
use tokio::task::JoinError;
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

/// For how long the list is reused. Probing every toolchain runs programs for seconds.
const MAX_AGE: Duration = Duration::from_secs(30);

/// The list of languages as it was last probed.
#[derive(Default)]
pub(super) struct Catalog {
    probed: Mutex<Option<(Instant, Arc<Vec<RuntimeEntry>>)>>,
}

impl Catalog {
    /// The list, probed by one request at a time.
    async fn entries(
        self: Arc<Self>,
        sandboxes: Arc<Sandboxes>,
    ) -> Result<Arc<Vec<RuntimeEntry>>, JoinError> {
        // In a task of its own: when a client disconnects, the next one must not start a second probe.
        let probing = tokio::spawn(async move {
            let mut probed = self.probed.lock().await;
            if let Some((at, entries)) = &*probed
                && at.elapsed() < MAX_AGE
            {
                return Ok(Arc::clone(entries));
            }
            let found = tokio::task::spawn_blocking(move || {
                sandboxes
                    .preferred()
                    .runtimes()
                    .probe_all()
                    .into_iter()
                    .map(RuntimeEntry::from)
                    .collect()
            });
            let entries = Arc::new(found.await?);
            *probed = Some((Instant::now(), Arc::clone(&entries)));
            Ok(entries)
        });
        probing.await?
    }
}

/// The languages.
#[utoipa::path(
    get,
    path = "/api/v1/runtimes",
    tag = "server",
    operation_id = "runtimes",
    responses((status = 200, description = "All languages, also those that are not installed; at most 30 s old", body = Vec<RuntimeEntry>))
)]
pub(super) async fn list(
    State(state): State<AppState>,
    Extension(catalog): Extension<Arc<Catalog>>,
    _caller: Caller<Read>,
    query: Query,
) -> Result<Response, Refusal> {
    query.end()?;
    let entries = catalog.entries(state.sandboxes).await.map_err(|error| {
        tracing::error!(%error, "probing the toolchains failed");
        Problem::new(Code::Internal, "the languages could not be probed")
    })?;
    Ok(Answer(&*entries).into_response())
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
