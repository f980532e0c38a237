use axum::Json;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use futures_util::future::join_all;
use sandbox_api::{
    Accepted, BatchReport, BatchRequest, BatchTicket, Code, ExecuteRequest, Problem,
};
use serde_json::json;

use super::body::JsonBody;
use super::caller::{Caller, Execute};
use super::error::ApiError;
use super::execute::{idempotency, idempotency_key};
use super::parameters;
use super::query::{Query, Wait};
use crate::state::AppState;
use crate::work::AnswerWith;

const MAX_REQUESTS: usize = 100;

/// Run several programs.
///
/// The response has a report or a problem for each request, in the order of the requests. Each request counts toward
/// the rate limit. With an idempotency key, each request gets a key of its own: the key and its index (`KEY:0`,
/// `KEY:1`, …).
#[utoipa::path(
    post,
    path = "/api/v1/batch",
    tag = "executions",
    operation_id = "batch",
    params(
        ("wait" = inline(Option<parameters::WaitParameter>), Query, description = "How long to wait: `true` (default) for the server's maximum, `false` to get ids instead of reports, or seconds"),
        ("Prefer" = Option<String>, Header, description = "`respond-async` or `wait=SECONDS` (RFC 7240); `wait` takes precedence"),
        ("Idempotency-Key" = Option<String>, Header, description = "The client's id for this batch: a batch that is sent again does not run again", min_length = 1, max_length = 255),
    ),
    request_body = BatchRequest,
    responses(
        (status = 200, description = "Reports and problems in the order of the requests. The report of an execution that is not finished when the wait ends has its status at that time", body = Vec<BatchReport>),
        (status = 202, description = "Ids and problems in the order of the requests", body = Vec<BatchTicket>),
    )
)]
pub(super) async fn batch(
    State(state): State<AppState>,
    caller: Caller<Execute>,
    query: Query,
    headers: HeaderMap,
    JsonBody(batch): JsonBody<BatchRequest>,
) -> Result<Response, ApiError> {
    let wait = query.only_wait()?.or(Wait::from_prefer_header(&headers)).unwrap_or(Wait::Max);
    let key = idempotency_key(&headers)?;
    if batch.requests.is_empty() || batch.requests.len() > MAX_REQUESTS {
        let reason = format!("must have 1 to {MAX_REQUESTS} items, not {}", batch.requests.len());
        return Err(ApiError::invalid("requests", reason));
    }
    let mut tickets = Vec::with_capacity(batch.requests.len());
    for (index, request) in batch.requests.into_iter().enumerate() {
        tickets.push(accept(&state, &caller, request, index, key).await);
    }
    let timeout = wait.timeout(state.config.wait_limit);
    if timeout.is_zero() {
        let tickets = tickets.into_iter().map(|ticket| match ticket {
            Ok(id) => BatchTicket::Accepted(Accepted { id, status: "queued".to_owned() }),
            Err(problem) => BatchTicket::Problem(problem),
        });
        return Ok((StatusCode::ACCEPTED, Json(tickets.collect::<Vec<_>>())).into_response());
    }
    let reports = tickets.into_iter().map(async |ticket| {
        let waited = match ticket {
            Ok(id) => state.work.wait(&id, caller.identity(), timeout).await,
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
    index: usize,
    key: Option<&str>,
) -> Result<String, Problem> {
    // The middleware took the token of the first request.
    if index > 0 {
        caller.take_token().map_err(ApiError::into_problem)?;
    }
    if request.stdin_stream {
        let reason = format!("requests[{index}]: stdin_stream: cannot be used in a batch");
        return Err(Problem::new(Code::InvalidField, reason));
    }
    let idempotency = key.map(|key| idempotency(&request, format!("{key}:{index}")));
    let accepted = state.work.accept(request, caller.identity(), idempotency, AnswerWith::Id).await;
    accepted.map(|ticket| ticket.id).map_err(|problem| match problem.code {
        Code::InvalidField => {
            let detail = format!("requests[{index}]: {}", problem.detail);
            Problem { detail, ..problem }
        }
        _ => problem,
    })
}
