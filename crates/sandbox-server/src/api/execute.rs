use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::header::{CONTENT_TYPE, LOCATION};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use sandbox_api::{Accepted, ExecuteRequest, Problem, Report, ServerSentEvent};
use sandbox_store::Idempotency;
use sha2::{Digest as _, Sha256};

use super::body::JsonBody;
use super::caller::{Caller, Execute, Read};
use super::error::ApiError;
use super::parameters;
use super::query::{Id, Query, Wait};
use super::stream;
use crate::state::AppState;
use crate::work::{AnswerWith, StoredReport};

const MAX_IDEMPOTENCY_KEY_LEN: usize = 255;

/// Run a program.
///
/// Waits for the report. If the execution is not finished when the wait ends, responds with its id, with which the
/// client gets the report later. With `Accept: text/event-stream`, responds at once and streams the events until the
/// report; `Location` has the id. An execution that starts at once is not stored before that: if the server crashes
/// within its first moments, its id is unknown afterwards, and it does not run again.
#[utoipa::path(
    post,
    path = "/api/v1/execute",
    tag = "executions",
    operation_id = "execute",
    params(
        ("wait" = inline(Option<parameters::WaitParameter>), Query, description = "How long to wait: `true` (default) for the server's maximum, `false` not at all, or seconds"),
        ("Prefer" = Option<String>, Header, description = "`respond-async` or `wait=SECONDS` (RFC 7240); `wait` takes precedence"),
        ("Accept" = Option<String>, Header, description = "`text/event-stream`, without `application/json`, for events instead of the report; excludes `wait`"),
        ("Idempotency-Key" = Option<String>, Header, description = "The client's id for this request: a request that is sent again does not run again", min_length = 1, max_length = 255),
    ),
    request_body = ExecuteRequest,
    responses(
        (status = 200, description = "The report, or the events; the id of each is its `seq`", content((Report = "application/json"), (ServerSentEvent = "text/event-stream")), headers(("Location" = Option<String>, description = "With events: the path of the report"))),
        (status = 202, description = "Not finished yet", body = Accepted, headers(("Location" = String, description = "The path of the report"))),
        (status = 409, description = "The idempotency key was already used for a different request", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn execute(
    State(state): State<AppState>,
    caller: Caller<Execute>,
    query: Query,
    headers: HeaderMap,
    JsonBody(request): JsonBody<ExecuteRequest>,
) -> Result<Response, ApiError> {
    let streams_events = stream::prefers_events(&headers);
    let parameter = query.only_wait()?;
    if streams_events && parameter.is_some() {
        let reason =
            "cannot be used with 'Accept: text/event-stream', whose response has all events";
        return Err(ApiError::invalid("wait", reason));
    }
    let preferred = Wait::from_prefer_header(&headers);
    let wait = parameter.or(preferred).unwrap_or(Wait::Max);
    let idempotency = idempotency_key(&headers)?.map(|key| self::idempotency(&request, key));
    let timeout = wait.timeout(state.config.wait_limit);
    if streams_events {
        let (client, answer) = (caller.identity(), AnswerWith::Events);
        let ticket = state.work.accept(request, client, idempotency, answer).await?;
        let events = state.work.events_of_ticket(&ticket, client).await?;
        return Ok(
            ([(LOCATION, path_of(&ticket.id))], stream::of_new_execution(events)).into_response()
        );
    }
    if request.stdin_stream && !timeout.is_zero() {
        let reason = "requires 'wait=false' or 'Accept: text/event-stream': the response has the id that the standard \
                      input is sent to";
        return Err(ApiError::invalid("stdin_stream", reason));
    }
    let answer = if timeout.is_zero() { AnswerWith::Id } else { AnswerWith::Report(timeout) };
    let ticket = state.work.accept(request, caller.identity(), idempotency, answer).await?;
    let mut response = if timeout.is_zero() && ticket.is_new {
        accepted(&ticket.id, "queued")
    } else {
        let report = match &ticket.report {
            Some(report) => report.clone(),
            None => state.work.wait_for_ticket(&ticket, caller.identity(), timeout).await?,
        };
        if report.is_final() {
            json_response(&report)
        } else {
            state.work.promise(&ticket.id).await?;
            accepted(&ticket.id, report.status.name())
        }
    };
    if response.status() == StatusCode::ACCEPTED
        && parameter.is_none()
        && preferred.is_some_and(|wait| wait.timeout(Duration::MAX).is_zero())
    {
        let applied = HeaderValue::from_static("respond-async");
        response.headers_mut().insert(HeaderName::from_static("preference-applied"), applied);
    }
    Ok(response)
}

/// Get an execution's report.
///
/// The report of an unfinished execution has its status and the fields that are known by then.
#[utoipa::path(
    get,
    path = "/api/v1/execute/{id}",
    tag = "executions",
    operation_id = "report",
    params(
        ("id" = String, Path, description = "The id of the execution"),
        ("wait" = inline(Option<parameters::WaitParameter>), Query, description = "How long to wait for the end: `false` (default) not at all, `true` for the server's maximum, or seconds"),
    ),
    responses((status = 200, description = "The report", body = Report))
)]
pub(super) async fn report(
    State(state): State<AppState>,
    caller: Caller<Read>,
    query: Query,
    Id(id): Id,
) -> Result<Response, ApiError> {
    let wait = query.only_wait()?.unwrap_or(Wait::AtMost(Duration::ZERO));
    let timeout = wait.timeout(state.config.wait_limit);
    let report = if timeout.is_zero() {
        state.work.report(&id, caller.identity()).await?
    } else {
        state.work.wait(&id, caller.identity(), timeout).await?
    };
    Ok(json_response(&report))
}

/// Cancel an execution.
///
/// No effect once it has finished.
#[utoipa::path(
    delete,
    path = "/api/v1/execute/{id}",
    tag = "executions",
    operation_id = "cancel",
    params(("id" = String, Path, description = "The id of the execution")),
    responses((status = 200, description = "The report", body = Report))
)]
pub(super) async fn cancel(
    State(state): State<AppState>,
    caller: Caller<Execute>,
    query: Query,
    Id(id): Id,
) -> Result<Response, ApiError> {
    query.reject_unknown()?;
    Ok(json_response(&state.work.cancel(&id, caller.identity()).await?))
}

/// A report as a response. It is serialized already.
fn json_response(report: &StoredReport) -> Response {
    let json = HeaderValue::from_static("application/json");
    ([(CONTENT_TYPE, json)], String::from(&*report.json)).into_response()
}

fn accepted(id: &str, status: &str) -> Response {
    let body = Accepted { id: id.to_owned(), status: status.to_owned() };
    (StatusCode::ACCEPTED, [(LOCATION, path_of(id))], Json(body)).into_response()
}

fn path_of(id: &str) -> String {
    format!("/api/v1/execute/{id}")
}

/// The `Idempotency-Key` header.
pub(super) fn idempotency_key(headers: &HeaderMap) -> Result<Option<&str>, ApiError> {
    let Some(value) = headers.get("idempotency-key") else {
        return Ok(None);
    };
    let key = value.to_str().ok().filter(|key| (1..=MAX_IDEMPOTENCY_KEY_LEN).contains(&key.len()));
    let reason = format!("it must be 1 to {MAX_IDEMPOTENCY_KEY_LEN} printable ASCII characters");
    key.map(Some).ok_or_else(|| ApiError::invalid("Idempotency-Key", reason))
}

/// The key with a hash of the deserialized request: whitespace and the order of fields do not make a different request.
pub(super) fn idempotency(request: &ExecuteRequest, key: impl Into<String>) -> Idempotency {
    let body = serde_json::to_vec(request).expect("a request consists of JSON values");
    let body_hash =
        Sha256::digest(body).iter().fold(String::new(), |hash, byte| hash + &format!("{byte:02x}"));
    Idempotency { key: key.into(), body_hash }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_depends_on_the_request_and_not_on_its_formatting() {
        let hashed = |text: &str| idempotency(&serde_json::from_str(text).unwrap(), "k");
        let one = hashed(r#"{"language": "python", "code": "1"}"#);
        assert_eq!(one, hashed(r#"{ "code":"1","language":"python" }"#));
        assert_ne!(one, hashed(r#"{"language": "python", "code": "2"}"#));
        assert_eq!(one.body_hash.len(), 64);
    }
}
