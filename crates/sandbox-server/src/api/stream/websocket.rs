use std::pin::pin;
use std::time::Duration;

use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::response::Response;
use futures_util::{Stream, StreamExt as _};
use sandbox_api::Problem;
use sandbox_store::StoredEvent;
use serde_json::json;
use tokio::time::{Instant, interval_at, timeout};

/// Clients send only control frames.
const MAX_MESSAGE_BYTES: usize = 4096;
const PING_INTERVAL: Duration = Duration::from_secs(15);
/// A client that sends nothing, or does not receive a message, for this long is disconnected.
const IDLE_TIMEOUT: Duration = Duration::from_secs(45);
/// Time for the closing handshake.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

pub(super) fn stream(
    upgrade: WebSocketUpgrade,
    events: impl Stream<Item = Result<StoredEvent, Problem>> + Send + 'static,
) -> Response {
    upgrade.max_message_size(MAX_MESSAGE_BYTES).max_frame_size(MAX_MESSAGE_BYTES).on_upgrade(
        |socket| async move {
            let (Ok(()) | Err(Disconnected)) = forward(socket, events).await;
        },
    )
}

/// The client disconnected before the last event.
struct Disconnected;

async fn forward(
    mut socket: WebSocket,
    events: impl Stream<Item = Result<StoredEvent, Problem>> + Send,
) -> Result<(), Disconnected> {
    let mut events = pin!(events);
    let mut pings = interval_at(Instant::now() + PING_INTERVAL, PING_INTERVAL);
    let mut last_received = Instant::now();
    loop {
        tokio::select! {
            event = events.next() => match event {
                Some(Ok(event)) => send(&mut socket, Message::text(event.json)).await?,
                Some(Err(problem)) => return fail(&mut socket, &problem).await,
                None => return close(&mut socket, close_code::NORMAL, "end of events").await,
            },
            received = socket.recv() => match received {
                // The library answers pings; other messages are ignored.
                Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Text(_) | Message::Binary(_))) => {
                    last_received = Instant::now();
                }
                Some(Ok(Message::Close(_)) | Err(_)) | None => return Err(Disconnected),
            },
            _ = pings.tick() => {
                if last_received.elapsed() > IDLE_TIMEOUT {
                    return Err(Disconnected);
                }
                send(&mut socket, Message::Ping(axum::body::Bytes::new())).await?;
            }
        }
    }
}

async fn send(socket: &mut WebSocket, message: Message) -> Result<(), Disconnected> {
    match timeout(IDLE_TIMEOUT, socket.send(message)).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(_)) | Err(_) => Err(Disconnected),
    }
}

/// Sends an internal error. The client can reconnect, and resume after the last event.
async fn fail(socket: &mut WebSocket, problem: &Problem) -> Result<(), Disconnected> {
    let event = json!({"type": "error", "problem": problem}).to_string();
    send(socket, Message::text(event)).await?;
    close(socket, close_code::ERROR, "internal error").await
}

async fn close(
    socket: &mut WebSocket,
    code: u16,
    reason: &'static str,
) -> Result<(), Disconnected> {
    send(socket, Message::Close(Some(CloseFrame { code, reason: reason.into() }))).await?;
    // Wait for the client's close frame: closing the socket first could discard ours.
    let closed = async { while let Some(Ok(_)) = socket.recv().await {} };
    let _ = timeout(CLOSE_TIMEOUT, closed).await;
    Ok(())
}
