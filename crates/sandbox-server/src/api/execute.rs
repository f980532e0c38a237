use std::time::Duration;

use axum::Json as Answer;
use axum::extract::State;
use axum::http::header::{CONTENT_TYPE, LOCATION};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use sandbox_api::{Accepted, ExecuteRequest, Problem};
use sandbox_store::Idempotency;
use sha2::{Digest as _, Sha256};

use super::body::Json;
use super::caller::{Caller, Execute, Read};
use super::query::{Id, Query, Wait};
use super::refusal::Refusal;
use super::schema;
use crate::state::AppState;
use crate::work::{AnswerWith, StoredReport};

/// Longer ones are not names of requests.
const MAX_IDEMPOTENCY_KEY_LEN: usize = 255;

/// Run code.
///
/// Waits for the report. If that takes longer than the server waits, or the client does not want to
/// wait, the answer is the execution's id, to ask for the report with.
#[utoipa::path(
    post,
    path = "/api/v1/execute",
    tag = "executions",
    operation_id = "execute",
    params(
        ("wait" = inline(Option<schema::WaitParameter>), Query, description = "`false`: do not wait; a number: wait so many seconds"),
        ("Prefer" = Option<String>, Header, description = "`respond-async`, or `wait=SECONDS`"),
        ("Idempotency-Key" = Option<String>, Header, description = "The client's name for this request: sent again, it is not carried out again", min_length = 1, max_length = 255),
    ),
    request_body = ExecuteRequest,
    responses(
        (status = 200, description = "The report", body = schema::Report),
        (status = 202, description = "It is not over yet", body = Accepted, headers(("Location" = String, description = "Where the report will be"))),
        (status = 409, description = "The idempotency key was used for another request", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn execute(
    State(state): State<AppState>,
    caller: Caller<Execute>,
    query: Query,
    headers: HeaderMap,
    Json(request): Json<ExecuteRequest>,
) -> Result<Response, Refusal> {
    let asked = query.only_wait()?;
    let preferred = Wait::preferred(&headers);
    let wait = asked.or(preferred).unwrap_or(Wait::Long);
    let idempotency = idempotency_key(&headers)?.map(|key| name_for(&request, key));
    let patience = wait.patience(state.config.wait_limit);
    let answer = if patience.is_zero() { AnswerWith::Id } else { AnswerWith::Report(patience) };
    let ticket = state.work.accept(request, caller.identity(), idempotency, answer).await?;
    let mut response = if patience.is_zero() && ticket.is_new {
        accepted(&ticket.id, "queued")
    } else {
        let report = match &ticket.report {
            Some(report) => report.clone(),
            None => state.work.wait_for_ticket(&ticket, caller.identity(), patience).await?,
        };
        if report.is_final() {
            told(&report)
        } else {
            state.work.promise(&ticket.id).await?;
            accepted(&ticket.id, report.status.name())
        }
    };
    let is_later = response.status() == StatusCode::ACCEPTED;
    if is_later
        && asked.is_none()
        && preferred.is_some_and(|wait| wait.patience(Duration::MAX).is_zero())
    {
        let applied = HeaderValue::from_static("respond-async");
        response.headers_mut().insert(HeaderName::from_static("preference-applied"), applied);
    }
    Ok(response)
}

/// What came of it so far.
#[utoipa::path(
    get,
    path = "/api/v1/execute/{id}",
    tag = "executions",
    operation_id = "report",
    params(
        ("id" = String, Path, description = "The execution"),
        ("wait" = inline(Option<schema::WaitParameter>), Query, description = "Wait so many seconds for the end"),
    ),
    responses((status = 200, description = "The report, or what is known before there is one", body = schema::Report))
)]
pub(super) async fn report(
    State(state): State<AppState>,
    caller: Caller<Read>,
    query: Query,
    Id(id): Id,
) -> Result<Response, Refusal> {
    let wait = query.only_wait()?.unwrap_or(Wait::AtMost(Duration::ZERO));
    let patience = wait.patience(state.config.wait_limit);
    let report = if patience.is_zero() {
        state.work.report(&id, caller.identity()).await?
    } else {
        state.work.wait(&id, caller.identity(), patience).await?
    };
    Ok(told(&report))
}

/// End it.
///
/// One that is over stays as it is.
#[utoipa::path(
    delete,
    path = "/api/v1/execute/{id}",
    tag = "executions",
    operation_id = "cancel",
    params(("id" = String, Path, description = "The execution")),
    responses((status = 200, description = "The report as it is now", body = schema::Report))
)]
pub(super) async fn cancel(
    State(state): State<AppState>,
    caller: Caller<Execute>,
    query: Query,
    Id(id): Id,
) -> Result<Response, Refusal> {
    query.end()?;
    Ok(told(&state.work.cancel(&id, caller.identity()).await?))
}

/// The report, as it was written already.
fn told(report: &StoredReport) -> Response {
    let json = HeaderValue::from_static("application/json");
    ([(CONTENT_TYPE, json)], String::from(&*report.json)).into_response()
}

fn accepted(id: &str, status: &str) -> Response {
    let body = Accepted { id: id.to_owned(), status: status.to_owned() };
    let location = format!("/api/v1/execute/{id}");
    (StatusCode::ACCEPTED, [(LOCATION, location)], Answer(body)).into_response()
}

/// The client's name for its request.
pub(super) fn idempotency_key(headers: &HeaderMap) -> Result<Option<&str>, Refusal> {
    let Some(value) = headers.get("idempotency-key") else {
        return Ok(None);
    };
    let sane = value.to_str().ok().filter(|key| (1..=MAX_IDEMPOTENCY_KEY_LEN).contains(&key.len()));
    let reason = format!("it must be 1 to {MAX_IDEMPOTENCY_KEY_LEN} printable ASCII characters");
    sane.map(Some).ok_or_else(|| Refusal::invalid("Idempotency-Key", reason))
}

/// The name, with a hash of what was asked for as we understood it: white space and the order of fields
/// make no other request.
pub(super) fn name_for(request: &ExecuteRequest, key: impl Into<String>) -> Idempotency {
    let body = serde_json::to_vec(request).expect("a request was read from JSON");
    let body_hash =
        Sha256::digest(body).iter().fold(String::new(), |hash, byte| hash + &format!("{byte:02x}"));
    Idempotency { key: key.into(), body_hash }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_goes_with_what_was_asked_for_and_not_with_how_it_was_written() {
        let name = |text: &str| name_for(&serde_json::from_str(text).unwrap(), "k");
        let one = name(r#"{"language": "python", "code": "1"}"#);
        assert_eq!(one, name(r#"{ "code":"1","language":"python" }"#));
        assert_ne!(one, name(r#"{"language": "python", "code": "2"}"#));
        assert_eq!(one.body_hash.len(), 64);
    }
}
