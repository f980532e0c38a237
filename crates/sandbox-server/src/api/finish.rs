use std::sync::Arc;
use std::time::Instant;

use axum::extract::{Request, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_LENGTH, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::Response;
use sandbox_api::Problem;
use tracing::Instrument as _;
use uuid::Uuid;

use super::asked::Asked;
use super::refusal::body_of;
use crate::metrics::Metrics;
use crate::state::AppState;
use crate::telemetry::{RequestSpan, Telemetry};

/// The header that names a request, in both directions.
pub(super) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Longer names are not a client's own, but somebody's attempt to fill our log.
const MAX_ID_LEN: usize = 128;

/// What is told of requests, and to whom.
#[derive(Clone)]
pub(super) struct Finish {
    metrics: Arc<Metrics>,
    telemetry: Telemetry,
}

impl Finish {
    pub(super) fn new(state: &AppState) -> Self {
        Self { metrics: Arc::clone(&state.metrics), telemetry: state.telemetry.clone() }
    }
}

/// Gives a request its id, writes it into the log and into the answer, and into the problem if the
/// answer is one. Counts and traces it.
pub(super) async fn finish(
    State(Finish { metrics, telemetry }): State<Finish>,
    request: Request,
    next: Next,
) -> Response {
    let id = request_id(request.headers());
    let Asked { method, route } = Asked::of(&request);
    let path = request.uri().path().to_owned();
    let span = tracing::info_span!("request", request_id = id, method, path);
    let trace = RequestSpan::begin(&telemetry, request.headers(), method, &route, &id);
    let origin = trace.origin(&telemetry, &id);
    let begun = Instant::now();
    let mut response = origin.scope(next.run(request)).instrument(span.clone()).await;
    if let Some(problem) = response.extensions_mut().remove::<Problem>() {
        let problem = Problem { request_id: Some(id.clone()), ..problem };
        response.headers_mut().remove(CONTENT_LENGTH);
        *response.body_mut() = body_of(&problem);
    }
    let (took, status) = (begun.elapsed(), response.status());
    metrics.answered(method, &route, status.as_u16(), took);
    trace.end(status);
    let milliseconds = took.as_secs_f64() * 1000.0;
    span.in_scope(|| tracing::info!(status = status.as_u16(), milliseconds, "answered"));
    let headers = response.headers_mut();
    if let Ok(id) = HeaderValue::from_str(&id) {
        headers.insert(REQUEST_ID, id);
    }
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    // What programs printed is their owner's; caches on the way must not keep it.
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

/// The client's name for its request, if it can be written into a log as it is; otherwise our own.
fn request_id(headers: &HeaderMap) -> String {
    let given = headers.get(REQUEST_ID).and_then(|id| id.to_str().ok());
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let sane = given.filter(|id| (1..=MAX_ID_LEN).contains(&id.len()) && id.chars().all(is_plain));
    sane.map_or_else(|| format!("req_{}", Uuid::now_v7().simple()), ToOwned::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(id: &str) -> String {
        let mut headers = HeaderMap::new();
        headers.insert(REQUEST_ID, HeaderValue::from_str(id).unwrap());
        request_id(&headers)
    }

    #[test]
    fn a_sane_id_is_kept_and_any_other_replaced() {
        assert_eq!(given("a-Z_0.9"), "a-Z_0.9");
        let long = "x".repeat(MAX_ID_LEN + 1);
        for id in ["", "two words", "a\"b", "a=b", &long] {
            assert!(given(id).starts_with("req_"), "{id}");
        }
        assert_ne!(request_id(&HeaderMap::new()), request_id(&HeaderMap::new()));
    }
}
