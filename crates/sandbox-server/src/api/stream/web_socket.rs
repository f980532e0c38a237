use std::pin::pin;
use std::time::Duration;

use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::response::Response;
use futures_util::{Stream, StreamExt as _};
use sandbox_api::Problem;
use sandbox_store::StoredEvent;
use serde_json::json;
use tokio::time::{Instant, interval_at, timeout};

/// Clients have nothing to say but pings and farewells.
const MAX_MESSAGE_BYTES: usize = 4096;
/// How often a client is asked whether it is there.
const BETWEEN_PINGS: Duration = Duration::from_secs(15);
/// A client that was not heard of for so long, or takes so long to take a message, is gone.
const IDLE_TIMEOUT: Duration = Duration::from_secs(45);

pub(super) fn answer(
    upgrade: WebSocketUpgrade,
    events: impl Stream<Item = Result<StoredEvent, Problem>> + Send + 'static,
) -> Response {
    upgrade.max_message_size(MAX_MESSAGE_BYTES).max_frame_size(MAX_MESSAGE_BYTES).on_upgrade(
        |socket| async move {
            // A client that went away has nobody to tell about it.
            let _ = tell(socket, events).await;
        },
    )
}

/// Why telling ended before the events did: the client is gone.
struct Gone;

async fn tell(
    mut socket: WebSocket,
    events: impl Stream<Item = Result<StoredEvent, Problem>> + Send,
) -> Result<(), Gone> {
    let mut events = pin!(events);
    let mut pings = interval_at(Instant::now() + BETWEEN_PINGS, BETWEEN_PINGS);
    let mut last_heard = Instant::now();
    loop {
        tokio::select! {
            event = events.next() => match event {
                Some(Ok(event)) => send(&mut socket, Message::text(event.json)).await?,
                Some(Err(problem)) => return fail(&mut socket, &problem).await,
                None => return close(&mut socket, close_code::NORMAL, "there are no more events").await,
            },
            heard = socket.recv() => match heard {
                // Pings are answered by the library; what else a client says does not matter.
                Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Text(_) | Message::Binary(_))) => {
                    last_heard = Instant::now();
                }
                Some(Ok(Message::Close(_)) | Err(_)) | None => return Err(Gone),
            },
            _ = pings.tick() => {
                if last_heard.elapsed() > IDLE_TIMEOUT {
                    return Err(Gone);
                }
                send(&mut socket, Message::Ping(axum::body::Bytes::new())).await?;
            }
        }
    }
}

async fn send(socket: &mut WebSocket, message: Message) -> Result<(), Gone> {
    match timeout(IDLE_TIMEOUT, socket.send(message)).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(_)) | Err(_) => Err(Gone),
    }
}

/// A failure of ours: the client may come again and go on from the last event it saw.
async fn fail(socket: &mut WebSocket, problem: &Problem) -> Result<(), Gone> {
    let event = json!({"type": "error", "problem": problem}).to_string();
    send(socket, Message::text(event)).await?;
    close(socket, close_code::ERROR, "the server failed").await
}

async fn close(socket: &mut WebSocket, code: u16, reason: &'static str) -> Result<(), Gone> {
    send(socket, Message::Close(Some(CloseFrame { code, reason: reason.into() }))).await?;
    // The connection is closed by whoever hears the other's farewell; ours must not cut its own off.
    let farewell = async { while let Some(Ok(_)) = socket.recv().await {} };
    let _ = timeout(Duration::from_secs(5), farewell).await;
    Ok(())
}
