use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Extension;
use axum::Json;
use axum::extract::State;
use sandbox::{ByteSize, Limits, Request, Sandbox, with_causes};
use sandbox_api::{Code, Problem, Ready};
use tokio::sync::Mutex;

use super::error::ApiError;
use crate::state::AppState;

/// A result is reused for this long, so that frequent requests cause no load.
const MAX_AGE: Duration = Duration::from_secs(5);
/// Languages for the check, fastest first. Any one will do: the check is about the sandbox.
const LANGUAGES: [&str; 4] = ["bash", "lua", "perl", "python"];

/// The last check: when it ended, and the error if it failed.
#[derive(Default)]
pub(super) struct ReadinessCheck {
    last: Mutex<Option<(Instant, Result<(), Failure>)>>,
}

/// Why the server is not ready.
#[derive(Clone, Debug)]
enum Failure {
    Storage(String),
    Sandbox(String),
}

/// Check that the server can run code.
///
/// Queries the database, writes to its disk, and runs a program in a sandbox of each isolation backend. The result is
/// at most 5 seconds old.
#[utoipa::path(
    get,
    path = "/api/v1/ready",
    tag = "server",
    operation_id = "ready",
    responses((status = 200, description = "Ready", body = Ready)),
    security(())
)]
pub(super) async fn ready(
    State(state): State<AppState>,
    Extension(check): Extension<Arc<ReadinessCheck>>,
) -> Result<Json<Ready>, ApiError> {
    if let Err(error) = state.store.ping().await {
        tracing::error!(reason = with_causes(&error), "database unavailable");
        return Err(Problem::new(Code::Unavailable, "database unavailable").into());
    }
    match check.result(&state).await {
        Ok(()) => {}
        Err(Failure::Storage(reason)) => {
            tracing::error!(reason, "not ready: executions cannot be stored");
            let detail = format!("executions cannot be stored: {reason}");
            return Err(Problem::new(Code::Unavailable, detail).into());
        }
        Err(Failure::Sandbox(reason)) => {
            tracing::error!(reason, "not ready: running a program in a sandbox failed");
            let detail = "running a program in a sandbox failed: see the server's log";
            return Err(Problem::new(Code::Unavailable, detail).into());
        }
    }
    let preferred = state.sandboxes.preferred();
    let capabilities = preferred.capabilities();
    let enforceable = capabilities.enforceable.iter().map(ToString::to_string).collect();
    let missing = capabilities.missing.iter().map(|missing| missing.protection.to_string());
    Ok(Json(Ready {
        status: "ready".to_owned(),
        enforceable,
        missing: missing.collect(),
        isolations: state.sandboxes.names().into_iter().map(ToOwned::to_owned).collect(),
        preferred: preferred.isolation().name().to_owned(),
    }))
}

impl ReadinessCheck {
    /// The result of the last check, or of a new one. Concurrent requests wait for the same check.
    async fn result(&self, state: &AppState) -> Result<(), Failure> {
        let mut last = self.last.lock().await;
        if let Some((ended, result)) = &*last
            && ended.elapsed() < MAX_AGE
            // A write that failed since then overrides an earlier success.
            && (result.is_err() || !state.store.is_failing())
        {
            return result.clone();
        }
        let result = Self::check_all(state).await;
        *last = Some((Instant::now(), result.clone()));
        result
    }

    async fn check_all(state: &AppState) -> Result<(), Failure> {
        let probed = state.store.probe().await;
        probed.map_err(|error| Failure::Storage(innermost(&error)))?;
        let sandboxes = Arc::clone(&state.sandboxes);
        let checked = tokio::task::spawn_blocking(move || {
            sandboxes.all().try_for_each(|sandbox| {
                run_empty_program(sandbox)
                    .map_err(|reason| format!("{}: {reason}", sandbox.isolation()))
            })
        });
        let checked = checked.await;
        checked.unwrap_or_else(|error| Err(error.to_string())).map_err(Failure::Sandbox)
    }
}

/// The innermost cause, without the path of the database: this endpoint needs no key.
fn innermost(error: &dyn Error) -> String {
    error.source().map_or_else(|| error.to_string(), innermost)
}

/// Runs an empty program. Allows the protections that the host lacks to be missing: only a change makes the check fail.
fn run_empty_program(sandbox: &Sandbox) -> Result<(), String> {
    let resolves = |name: &&str| {
        let request = Request::builder(name).code("").build();
        request.is_ok_and(|request| sandbox.runtimes().resolve(request.language()).is_ok())
    };
    let language = LANGUAGES.iter().find(|name| resolves(name));
    let language = language
        .ok_or_else(|| format!("none of these languages is installed: {}", LANGUAGES.join(", ")))?;
    let limits = Limits::run().with_wall_time(Duration::from_secs(5));
    let limits = limits.and_then(|limits| limits.with_memory(ByteSize::mib(64)));
    let limits = limits.map_err(|error| error.to_string())?;
    let mut builder = Request::builder(language).code("").limits(limits);
    for missing in &sandbox.capabilities().missing {
        builder = builder.allow_missing(missing.protection);
    }
    let request = builder.build().map_err(|error| error.to_string())?;
    let report = sandbox.execute(request).map_err(|error| with_causes(&error))?;
    if report.success {
        return Ok(());
    }
    Err(report.error.unwrap_or_else(|| format!("{language}: unexpected status {}", report.status)))
}
