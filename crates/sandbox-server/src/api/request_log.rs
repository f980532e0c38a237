//! The outermost middleware: assigns an id to each request, and records the request in the log, the metrics and the traces.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Instant;

use axum::extract::{MatchedPath, Request, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_LENGTH, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method};
use axum::middleware::Next;
use axum::response::Response;
use sandbox_api::Problem;
use tracing::Instrument as _;
use uuid::Uuid;

use super::error::body_of;
use crate::metrics::Metrics;
use crate::state::AppState;
use crate::telemetry::{RequestSpan, Telemetry};

/// The header with the id of a request, in requests and in responses.
pub(super) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The server replaces longer ids, so that a client cannot fill the log.
const MAX_ID_LEN: usize = 128;

/// The state of the middleware.
#[derive(Clone)]
pub(super) struct RequestLog {
    metrics: Arc<Metrics>,
    telemetry: Telemetry,
}

impl RequestLog {
    pub(super) fn new(state: &AppState) -> Self {
        Self { metrics: Arc::clone(&state.metrics), telemetry: state.telemetry.clone() }
    }
}

/// Serves a request, and records it. Adds to the response the request id (also to the problem, if the response is
/// one) and the headers that every response has.
pub(super) async fn log_request(
    State(RequestLog { metrics, telemetry }): State<RequestLog>,
    request: Request,
    next: Next,
) -> Response {
    let id = request_id(request.headers());
    let (method, route) = (method(request.method()), route(&request));
    let path = request.uri().path().to_owned();
    let span = tracing::info_span!("request", request_id = id, method, path);
    let trace = RequestSpan::begin(&telemetry, request.headers(), method, &route, &id);
    let origin = trace.origin(&telemetry, &id);
    let started = Instant::now();
    let mut response = origin.scope(next.run(request)).instrument(span.clone()).await;
    if let Some(problem) = response.extensions_mut().remove::<Problem>() {
        let problem = Problem { request_id: Some(id.clone()), ..problem };
        response.headers_mut().remove(CONTENT_LENGTH);
        *response.body_mut() = body_of(&problem);
    }
    let (took, status) = (started.elapsed(), response.status());
    metrics.answered(method, &route, status.as_u16(), took);
    trace.end(status);
    let milliseconds = took.as_secs_f64() * 1000.0;
    span.in_scope(|| tracing::info!(status = status.as_u16(), milliseconds, "answered"));
    let headers = response.headers_mut();
    if let Ok(id) = HeaderValue::from_str(&id) {
        headers.insert(REQUEST_ID, id);
    }
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    // Responses hold the output of programs: a shared cache must not store them.
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

/// The client's id for its request if a log line needs no escaping for it, else a new id.
fn request_id(headers: &HeaderMap) -> String {
    let sent = headers.get(REQUEST_ID).and_then(|id| id.to_str().ok());
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let valid = sent.filter(|id| (1..=MAX_ID_LEN).contains(&id.len()) && id.chars().all(is_plain));
    valid.map_or_else(|| format!("req_{}", Uuid::now_v7().simple()), ToOwned::to_owned)
}

/// The path template of the matched route, or `unknown`. Metrics and traces use it instead of the path, of which
/// clients can send any number.
fn route(request: &Request) -> Cow<'static, str> {
    let matched = request.extensions().get::<MatchedPath>();
    matched.map_or(Cow::Borrowed("unknown"), |path| path.as_str().to_owned().into())
}

/// The method if HTTP defines it, or `other`; bounds the number of values like [`route`].
fn method(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id_for(sent: &str) -> String {
        let mut headers = HeaderMap::new();
        headers.insert(REQUEST_ID, HeaderValue::from_str(sent).unwrap());
        request_id(&headers)
    }

    #[test]
    fn a_valid_id_is_kept_and_any_other_replaced() {
        assert_eq!(id_for("a-Z_0.9"), "a-Z_0.9");
        let long = "x".repeat(MAX_ID_LEN + 1);
        for id in ["", "two words", "a\"b", "a=b", &long] {
            assert!(id_for(id).starts_with("req_"), "{id}");
        }
        assert_ne!(request_id(&HeaderMap::new()), request_id(&HeaderMap::new()));
    }
}
