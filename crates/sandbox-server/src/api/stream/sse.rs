use std::convert::Infallible;
use std::time::Duration;

use axum::http::{HeaderName, HeaderValue};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use futures_util::{Stream, StreamExt as _};
use sandbox_api::Problem;
use sandbox_store::StoredEvent;
use serde_json::json;

/// Proxies close connections that are idle for a minute.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(15);

/// Streams events, after a first one that the caller has read already.
pub(super) fn stream(
    first: Option<Result<StoredEvent, Problem>>,
    events: impl Stream<Item = Result<StoredEvent, Problem>> + Send + 'static,
) -> Response {
    let events = futures_util::stream::iter(first).chain(events);
    let encoded = events.map(|event| Ok::<_, Infallible>(encode(event)));
    let keep_alive = KeepAlive::new().interval(KEEP_ALIVE_INTERVAL);
    let mut response = Sse::new(encoded).keep_alive(keep_alive).into_response();
    // Tells nginx not to buffer the stream.
    let buffering = HeaderName::from_static("x-accel-buffering");
    response.headers_mut().insert(buffering, HeaderValue::from_static("no"));
    response
}

/// An error has no id, so that the client resumes after the last event.
fn encode(event: Result<StoredEvent, Problem>) -> Event {
    match event {
        Ok(event) => Event::default().id(event.seq.to_string()).data(event.json),
        Err(problem) => {
            Event::default().data(json!({"type": "error", "problem": problem}).to_string())
        }
    }
}
