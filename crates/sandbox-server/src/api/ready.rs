use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Extension;
use axum::Json as Answer;
use axum::extract::State;
use sandbox::{ByteSize, Limits, Request, Sandbox, with_causes};
use sandbox_api::{Code, Problem};
use serde::Serialize;
use tokio::sync::Mutex;
use utoipa::ToSchema;

use super::refusal::Refusal;
use crate::state::AppState;

/// For so long, the last trial answers for the next: whoever asks often must not keep us busy.
const TRIAL_HOLDS: Duration = Duration::from_secs(5);
/// Languages to try with, the quickest first. Which one it is says nothing; walls are what is tried.
const LANGUAGES: [&str; 4] = ["bash", "lua", "perl", "python"];

/// That the server can run code.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Ready {
    /// `ready`.
    status: &'static str,
    /// Protections that this host can enforce.
    enforceable: Vec<String>,
    /// Protections that it cannot: executions need `allow_missing` for these.
    missing: Vec<String>,
    /// What may build the walls: the names that `isolation` takes, beside `auto`.
    isolations: Vec<&'static str>,
    /// What `auto` takes; the protections above are those of it.
    preferred: &'static str,
}

/// The last trial: when it ended, and why it failed if it did.
#[derive(Default)]
pub(super) struct Trial {
    last: Mutex<Option<(Instant, Result<(), Failure>)>>,
}

/// Why the server cannot do its work.
#[derive(Clone, Debug)]
enum Failure {
    Storage(String),
    Sandbox(String),
}

/// Whether the server can run code now.
///
/// That is: its store answers, something was written to its disk, and a sandbox of each isolation was built and used
/// within the last seconds.
#[utoipa::path(
    get,
    path = "/api/v1/ready",
    tag = "server",
    operation_id = "ready",
    responses((status = 200, description = "It can", body = Ready)),
    security(())
)]
pub(super) async fn ready(
    State(state): State<AppState>,
    Extension(trial): Extension<Arc<Trial>>,
) -> Result<Answer<Ready>, Refusal> {
    if let Err(error) = state.store.ping().await {
        tracing::error!(reason = with_causes(&error), "the store does not answer");
        return Err(Problem::new(Code::Unavailable, "the store does not answer").into());
    }
    match trial.result(&state).await {
        Ok(()) => {}
        Err(Failure::Storage(reason)) => {
            tracing::error!(reason, "executions cannot be stored");
            let detail = format!("executions cannot be stored: {reason}");
            return Err(Problem::new(Code::Unavailable, detail).into());
        }
        Err(Failure::Sandbox(reason)) => {
            tracing::error!(reason, "no sandbox can be used");
            let detail = "no sandbox can be used; see the log";
            return Err(Problem::new(Code::Unavailable, detail).into());
        }
    }
    let preferred = state.sandboxes.preferred();
    let capabilities = preferred.capabilities();
    let enforceable = capabilities.enforceable.iter().map(ToString::to_string).collect();
    let missing = capabilities.missing.iter().map(|missing| missing.protection.to_string());
    Ok(Answer(Ready {
        status: "ready",
        enforceable,
        missing: missing.collect(),
        isolations: state.sandboxes.names(),
        preferred: preferred.isolation().name(),
    }))
}

impl Trial {
    /// The result of the last trial, or of a new one that all who ask meanwhile wait for.
    async fn result(&self, state: &AppState) -> Result<(), Failure> {
        let mut last = self.last.lock().await;
        if let Some((ended, result)) = &*last
            && ended.elapsed() < TRIAL_HOLDS
            // What failed since then is not hidden by a trial that went well.
            && (result.is_err() || !state.store.is_failing())
        {
            return result.clone();
        }
        let result = Self::try_all(state).await;
        *last = Some((Instant::now(), result.clone()));
        result
    }

    async fn try_all(state: &AppState) -> Result<(), Failure> {
        let probed = state.store.probe().await;
        probed.map_err(|error| Failure::Storage(innermost(&error)))?;
        let sandboxes = Arc::clone(&state.sandboxes);
        let tried = tokio::task::spawn_blocking(move || {
            sandboxes.all().try_for_each(|sandbox| {
                run_nothing(sandbox).map_err(|reason| format!("{}: {reason}", sandbox.isolation()))
            })
        });
        let tried = tried.await;
        tried.unwrap_or_else(|error| Err(error.to_string())).map_err(Failure::Sandbox)
    }
}

/// The reason without where the database lies, which strangers need not know.
fn innermost(error: &dyn Error) -> String {
    error.source().map_or_else(|| error.to_string(), innermost)
}

/// Runs an empty program. Walls that this host never had are no reason to fail now.
fn run_nothing(sandbox: &Sandbox) -> Result<(), String> {
    let resolves = |name: &&str| {
        let request = Request::builder(name).code("").build();
        request.is_ok_and(|request| sandbox.runtimes().resolve(request.language()).is_ok())
    };
    let language = LANGUAGES.iter().find(|name| resolves(name));
    let language = language.ok_or_else(|| format!("none of {} is here", LANGUAGES.join(", ")))?;
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
    Err(report.error.unwrap_or_else(|| format!("{language} ended with {}", report.status)))
}
