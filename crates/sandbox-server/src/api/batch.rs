use axum::Json as Answer;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use futures_util::future::join_all;
use sandbox_api::{Accepted, Code, ExecuteRequest, Problem};
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;

use super::body::Json;
use super::caller::{Caller, Execute};
use super::execute::{idempotency_key, name_for};
use super::query::{Query, Wait};
use super::refusal::Refusal;
use super::schema;
use crate::state::AppState;
use crate::work::AnswerWith;

/// As many as one call may ask for.
const MAX_REQUESTS: usize = 100;

/// Requests to run code, each for itself.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct BatchRequest {
    /// The requests.
    #[schema(min_items = 1, max_items = 100)]
    requests: Vec<ExecuteRequest>,
}

/// Run many.
///
/// The answer has a report, or the problem why there is none, for each request in its place. Each
/// request takes a token of the client's rate. With an idempotency key, each request has it with its
/// place (`KEY:0`, `KEY:1`, …) as its own.
#[utoipa::path(
    post,
    path = "/api/v1/batch",
    tag = "executions",
    operation_id = "batch",
    params(
        ("wait" = inline(Option<schema::WaitParameter>), Query, description = "`false`: answer with ids instead of reports"),
        ("Prefer" = Option<String>, Header, description = "`respond-async`, or `wait=SECONDS`"),
        ("Idempotency-Key" = Option<String>, Header, description = "The client's name for this batch", min_length = 1, max_length = 255),
    ),
    request_body = BatchRequest,
    responses(
        (status = 200, description = "Reports and problems in the order of the requests; what is not over when the server stops waiting is told as it is then", body = Vec<schema::BatchReport>),
        (status = 202, description = "Ids and problems in the order of the requests", body = Vec<schema::BatchTicket>),
    )
)]
pub(super) async fn batch(
    State(state): State<AppState>,
    caller: Caller<Execute>,
    query: Query,
    headers: HeaderMap,
    Json(batch): Json<BatchRequest>,
) -> Result<Response, Refusal> {
    let wait = query.only_wait()?.or(Wait::preferred(&headers)).unwrap_or(Wait::Long);
    let key = idempotency_key(&headers)?;
    if batch.requests.is_empty() || batch.requests.len() > MAX_REQUESTS {
        let reason = format!("send 1 to {MAX_REQUESTS} of them, not {}", batch.requests.len());
        return Err(Refusal::invalid("requests", reason));
    }
    let mut tickets = Vec::with_capacity(batch.requests.len());
    for (place, request) in batch.requests.into_iter().enumerate() {
        tickets.push(accept(&state, &caller, request, place, key).await);
    }
    let patience = wait.patience(state.config.wait_limit);
    if patience.is_zero() {
        let answers = tickets.into_iter().map(|ticket| match ticket {
            Ok(id) => json!(Accepted { id, status: "queued".to_owned() }),
            Err(problem) => json!(problem),
        });
        return Ok((StatusCode::ACCEPTED, Answer(answers.collect::<Vec<_>>())).into_response());
    }
    let reports = tickets.into_iter().map(async |ticket| {
        let waited = match ticket {
            Ok(id) => state.work.wait(&id, caller.identity(), patience).await,
            Err(problem) => Err(problem),
        };
        match waited {
            Ok(report) => report.json.to_string(),
            Err(problem) => json!(problem).to_string(),
        }
    });
    let reports = format!("[{}]", join_all(reports).await.join(","));
    Ok(([(CONTENT_TYPE, "application/json")], reports).into_response())
}

async fn accept(
    state: &AppState,
    caller: &Caller<Execute>,
    request: ExecuteRequest,
    place: usize,
    key: Option<&str>,
) -> Result<String, Problem> {
    // The call itself took the token of its first request.
    if place > 0 {
        caller.take_token().map_err(Refusal::into_problem)?;
    }
    let idempotency = key.map(|key| name_for(&request, format!("{key}:{place}")));
    let accepted = state.work.accept(request, caller.identity(), idempotency, AnswerWith::Id).await;
    accepted.map(|ticket| ticket.id).map_err(|problem| match problem.code {
        Code::InvalidField => {
            let detail = format!("requests[{place}]: {}", problem.detail);
            Problem { detail, ..problem }
        }
        _ => problem,
    })
}
