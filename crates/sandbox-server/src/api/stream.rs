//! Events as they happen, by WebSocket or as server-sent events; both begin wherever the client left
//! off, and end after the report.

mod server_sent;
mod web_socket;

use axum::extract::State;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::http::header::{ACCEPT, HOST, ORIGIN};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use futures_util::Stream;
use sandbox_api::{Code, Problem};
use sandbox_store::StoredEvent;

use super::caller::{Caller, Read};
use super::cors;
use super::query::{Id, Query};
use super::refusal::Refusal;
use super::schema;
use crate::state::AppState;
use crate::work::EventStream;

/// Watch it.
///
/// A WebSocket with an event in each message; with `Accept: text/event-stream`, server-sent events. The
/// stream ends after the `report` event. A client that lost its connection goes on where it was.
#[utoipa::path(
    get,
    path = "/api/v1/execute/{id}/stream",
    tag = "executions",
    operation_id = "stream",
    params(
        ("id" = String, Path, description = "The execution"),
        ("from" = Option<u64>, Query, description = "The `seq` of the first event that is wanted"),
        ("Last-Event-ID" = Option<u64>, Header, description = "The `seq` of the last event that is not wanted again; browsers send it by themselves"),
    ),
    responses(
        (status = 101, description = "A WebSocket; each message is an event"),
        (status = 200, description = "Events; the id of each is its `seq`", body = schema::ServerSentEvent, content_type = "text/event-stream"),
        (status = 204, description = "The client has seen all events of an execution that is over: a browser stops asking"),
        (status = 426, description = "The request asks neither for a WebSocket nor for server-sent events", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn stream(
    State(state): State<AppState>,
    caller: Caller<Read>,
    mut query: Query,
    Id(id): Id,
    headers: HeaderMap,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, Refusal> {
    let from = query.read("from", sequence)?;
    query.end()?;
    let seen = last_event_id(&headers)?;
    // Who reconnects says more than the URL, which is that of the first time.
    let after = seen.or(from.map(|from| from.saturating_sub(1))).unwrap_or(0);
    if let Ok(upgrade) = upgrade {
        refuse_foreign_pages(&headers, &state.config.cors_origins)?;
        let events = state.work.events(&id, caller.identity(), after).await?;
        return Ok(web_socket::answer(upgrade, in_order(events)));
    }
    if !accepts_events(&headers) {
        // That there is no such execution comes before how to watch one.
        state.work.is_over(&id, caller.identity()).await?;
        let detail = "ask for a WebSocket, or send 'Accept: text/event-stream'";
        return Err(Refusal::with_status(StatusCode::UPGRADE_REQUIRED, Code::InvalidField, detail));
    }
    let is_over = state.work.is_over(&id, caller.identity()).await?;
    let mut events = state.work.events(&id, caller.identity(), after).await?;
    if seen.is_some() && is_over {
        // Browsers reconnect when a stream ends, as this one did after its report.
        return Ok(match events.next().await {
            None => StatusCode::NO_CONTENT.into_response(),
            Some(first) => server_sent::answer(Some(first), in_order(events)),
        });
    }
    Ok(server_sent::answer(None, in_order(events)))
}

/// The events as a stream, which can be waited for beside other things without losing one.
fn in_order(
    events: EventStream,
) -> impl Stream<Item = Result<StoredEvent, Problem>> + Send + 'static {
    futures_util::stream::unfold(events, async |mut events| {
        let event = events.next().await?;
        Some((event, events))
    })
}

fn accepts_events(headers: &HeaderMap) -> bool {
    let values = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let mut ranges = values.flat_map(|value| value.split(','));
    ranges.any(|range| {
        let media_type = range.split(';').next().unwrap_or("").trim();
        media_type.eq_ignore_ascii_case("text/event-stream")
    })
}

fn last_event_id(headers: &HeaderMap) -> Result<Option<u64>, Refusal> {
    let Some(value) = headers.get("last-event-id") else {
        return Ok(None);
    };
    let read = sequence(value.to_str().unwrap_or("?"));
    read.map(Some).map_err(|reason| Refusal::invalid("Last-Event-ID", reason))
}

fn sequence(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("'{text}' is not the number of an event"))
}

fn refuse_foreign_pages(headers: &HeaderMap, allowed: &[String]) -> Result<(), Refusal> {
    let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or(""));
    match text(ORIGIN) {
        Some(origin) if !cors::allows(allowed, origin, text(HOST)) => {
            let detail = format!("pages of '{origin}' are not served here");
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
    fn server_sent_events_are_asked_for_by_name() {
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
