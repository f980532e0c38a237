use std::panic::resume_unwind;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use axum::{Extension, Json};
use rustix::process::setpriority_process;
use sandbox::RuntimeStatus;
use sandbox_api::{Code, Problem, RuntimeEntry};
use sandbox_scheduler::Sandboxes;
use tokio::sync::Mutex;
use tokio::task::JoinError;

use super::caller::{Caller, Read};
use super::error::ApiError;
use super::query::Query;
use crate::state::AppState;

/// The list is reused for this long: probing every toolchain runs programs for seconds.
const MAX_AGE: Duration = Duration::from_secs(30);
/// The nice value of the probe: any key may ask for it, and others must not wait for its programs.
const LOWEST_PRIORITY: i32 = 19;

/// The list of languages from the last probe.
#[derive(Default)]
pub(super) struct Catalog {
    probed: Mutex<Option<(Instant, Arc<Vec<RuntimeEntry>>)>>,
}

impl Catalog {
    /// The list. Only one request at a time probes.
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
                at_low_priority(move || sandboxes.preferred().runtimes().probe_all())
            });
            let entries: Arc<Vec<_>> = Arc::new(found.await?.into_iter().map(entry).collect());
            *probed = Some((Instant::now(), Arc::clone(&entries)));
            Ok(entries)
        });
        probing.await?
    }
}

/// Runs a closure whose processes give way to executions. On a thread of its own, because only a privileged process can
/// raise the priority of a thread again.
fn at_low_priority<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let thread = std::thread::spawn(move || {
        // Of this thread only. Without it the probe competes equally.
        let _ = setpriority_process(None, LOWEST_PRIORITY);
        work()
    });
    thread.join().unwrap_or_else(|panic| resume_unwind(panic))
}

/// List languages.
#[utoipa::path(
    get,
    path = "/api/v1/runtimes",
    tag = "server",
    operation_id = "runtimes",
    responses((status = 200, description = "All languages, including those that are not installed; at most 30 seconds old", body = Vec<RuntimeEntry>))
)]
pub(super) async fn list(
    State(state): State<AppState>,
    Extension(catalog): Extension<Arc<Catalog>>,
    _caller: Caller<Read>,
    query: Query,
) -> Result<Response, ApiError> {
    query.reject_unknown()?;
    let entries = catalog.entries(state.sandboxes).await.map_err(|error| {
        tracing::error!(%error, "probing the toolchains failed");
        Problem::new(Code::Internal, "probing the toolchains failed")
    })?;
    Ok(Json(&*entries).into_response())
}

fn entry(status: RuntimeStatus) -> RuntimeEntry {
    RuntimeEntry {
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

#[cfg(test)]
mod tests {
    use rustix::process::getpriority_process;

    use super::*;

    #[test]
    fn only_the_probe_and_its_processes_have_a_low_priority() {
        let priority = || getpriority_process(None).unwrap();
        let own = priority();
        let (of_probe, of_process) = at_low_priority(move || {
            let process = std::process::Command::new("nice").output().unwrap().stdout;
            (priority(), String::from_utf8(process).unwrap())
        });
        assert_eq!((of_probe, of_process.trim()), (LOWEST_PRIORITY, "19"));
        assert_eq!(priority(), own);
    }
}
