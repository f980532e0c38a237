use std::convert::Infallible;
use std::time::Duration;

use axum::http::{HeaderName, HeaderValue};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use futures_util::{Stream, StreamExt as _};
use sandbox_api::Problem;
use sandbox_store::StoredEvent;
use serde_json::json;

/// Proxies close connections on which nothing is said for a minute.
const BETWEEN_COMMENTS: Duration = Duration::from_secs(15);

/// The events, with one that was read already before them.
pub(super) fn answer(
    first: Option<Result<StoredEvent, Problem>>,
    events: impl Stream<Item = Result<StoredEvent, Problem>> + Send + 'static,
) -> Response {
    let events = futures_util::stream::iter(first).chain(events);
    let written = events.map(|event| Ok::<_, Infallible>(write(event)));
    let keep_alive = KeepAlive::new().interval(BETWEEN_COMMENTS);
    let mut response = Sse::new(written).keep_alive(keep_alive).into_response();
    // Asks nginx not to collect events before it passes them on.
    let buffering = HeaderName::from_static("x-accel-buffering");
    response.headers_mut().insert(buffering, HeaderValue::from_static("no"));
    response
}

/// A failure of ours has no number: after it, the client goes on from the last event it saw.
fn write(event: Result<StoredEvent, Problem>) -> Event {
    match event {
        Ok(event) => Event::default().id(event.seq.to_string()).data(event.json),
        Err(problem) => {
            Event::default().data(json!({"type": "error", "problem": problem}).to_string())
        }
    }
}
