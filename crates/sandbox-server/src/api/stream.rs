//! Events of an execution, over a WebSocket or as server-sent events. A client can resume after the last event that it
//! has received; the stream ends after the report.

mod sse;
mod websocket;

use axum::extract::State;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::http::header::{ACCEPT, HOST, ORIGIN};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use futures_util::Stream;
use sandbox_api::{Code, Problem, ServerSentEvent};
use sandbox_store::StoredEvent;

use super::caller::{Caller, Read};
use super::cors;
use super::error::ApiError;
use super::query::{Id, Query};
use crate::state::AppState;
use crate::work::EventStream;

/// Stream events.
///
/// A WebSocket with one event in each message, or server-sent events with `Accept: text/event-stream`. The stream ends
/// after the `report` event. A client that lost its connection can resume with `from` or `Last-Event-ID`.
#[utoipa::path(
    get,
    path = "/api/v1/execute/{id}/stream",
    tag = "executions",
    operation_id = "stream",
    params(
        ("id" = String, Path, description = "The id of the execution"),
        ("from" = Option<u64>, Query, description = "The `seq` of the first event to send. Default: 1"),
        ("Last-Event-ID" = Option<u64>, Header, description = "The `seq` of the last received event; takes precedence over `from`. Browsers send it when they reconnect"),
    ),
    responses(
        (status = 101, description = "A WebSocket; each message is an event"),
        (status = 200, description = "Server-sent events; the id of each is its `seq`", body = ServerSentEvent, content_type = "text/event-stream"),
        (status = 204, description = "The client has received all events of a finished execution; stops a browser from reconnecting"),
        (status = 426, description = "The request is neither for a WebSocket nor for server-sent events", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn stream(
    State(state): State<AppState>,
    caller: Caller<Read>,
    mut query: Query,
    Id(id): Id,
    headers: HeaderMap,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, ApiError> {
    let from = query.parse("from", sequence)?;
    query.reject_unknown()?;
    let received = last_event_id(&headers)?;
    // A browser that reconnects sends the header with the URL of the first connection: the header is newer.
    let after = received.or(from.map(|from| from.saturating_sub(1))).unwrap_or(0);
    if let Ok(upgrade) = upgrade {
        check_origin(&headers, &state.config.cors_origins)?;
        let events = state.work.events(&id, caller.identity(), after).await?;
        return Ok(websocket::stream(upgrade, into_stream(events)));
    }
    if !accepts_events(&headers) {
        // An unknown execution is 404 before 426.
        state.work.is_over(&id, caller.identity()).await?;
        let detail = "open a WebSocket, or send 'Accept: text/event-stream'";
        return Err(ApiError::with_status(
            StatusCode::UPGRADE_REQUIRED,
            Code::InvalidField,
            detail,
        ));
    }
    let is_over = state.work.is_over(&id, caller.identity()).await?;
    let mut events = state.work.events(&id, caller.identity(), after).await?;
    if received.is_some() && is_over {
        // Browsers reconnect after the end of a stream; 204 stops them.
        return Ok(match events.next().await {
            None => StatusCode::NO_CONTENT.into_response(),
            Some(first) => sse::stream(Some(first), into_stream(events)),
        });
    }
    Ok(sse::stream(None, into_stream(events)))
}

/// The response to a request whose client follows the events.
pub(super) fn of_new_execution(events: EventStream) -> Response {
    sse::stream(None, into_stream(events))
}

/// The events as a `Stream`, which `select!` can poll without losing an event.
fn into_stream(
    events: EventStream,
) -> impl Stream<Item = Result<StoredEvent, Problem>> + Send + 'static {
    futures_util::stream::unfold(events, async |mut events| {
        let event = events.next().await?;
        Some((event, events))
    })
}

/// Whether the client asks for events where a response in JSON is the default: it names both if it can read both.
pub(super) fn prefers_events(headers: &HeaderMap) -> bool {
    accepts_events(headers) && !accepts(headers, "application/json")
}

fn accepts_events(headers: &HeaderMap) -> bool {
    accepts(headers, "text/event-stream")
}

fn accepts(headers: &HeaderMap, wanted: &str) -> bool {
    let values = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let mut ranges = values.flat_map(|value| value.split(','));
    ranges.any(|range| {
        let media_type = range.split(';').next().unwrap_or("").trim();
        media_type.eq_ignore_ascii_case(wanted)
    })
}

fn last_event_id(headers: &HeaderMap) -> Result<Option<u64>, ApiError> {
    let Some(value) = headers.get("last-event-id") else {
        return Ok(None);
    };
    let seq = sequence(value.to_str().unwrap_or("?"));
    seq.map(Some).map_err(|reason| ApiError::invalid("Last-Event-ID", reason))
}

fn sequence(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("'{text}' is not a sequence number"))
}

fn check_origin(headers: &HeaderMap, allowed: &[String]) -> Result<(), ApiError> {
    let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or(""));
    match text(ORIGIN) {
        Some(origin) if !cors::allows(allowed, origin, text(HOST)) => {
            let detail = format!(
                "the origin '{origin}' is not allowed: the operator can add it to 'cors_origins'"
            );
            Err(Problem::new(Code::Forbidden, detail).into())
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    #[test]
    fn server_sent_events_need_an_accept_header() {
        let accepts = |value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT, HeaderValue::from_static(value));
            accepts_events(&headers)
        };
        assert!(accepts("text/event-stream"));
        assert!(accepts("application/json, Text/Event-Stream;q=0.5"));
        assert!(!accepts("*/*"));
        assert!(!accepts("text/event-streams"));
    }
}
