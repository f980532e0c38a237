use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use futures_util::StreamExt as _;
use sandbox_api::{Code, Problem};

use super::caller::{Caller, Execute};
use super::error::ApiError;
use super::query::{Id, Query};
use crate::keys::Identity;
use crate::state::AppState;
use crate::work::{StdinSender, Work};

const OCTET_STREAM: &str = "application/octet-stream";

/// Stream the standard input.
///
/// The program reads the body as it arrives, and end of file at its end. Responds when the body has ended or the program
/// reads no more. If the connection is lost before the end of the body, the execution is cancelled. An execution takes one
/// such request.
#[utoipa::path(
    post,
    path = "/api/v1/execute/{id}/stdin",
    tag = "executions",
    operation_id = "stdin",
    params(("id" = String, Path, description = "The id of an execution that was requested with `stdin_stream`")),
    request_body(content = Vec<u8>, content_type = "application/octet-stream", description = "The standard input. Its size is not limited"),
    responses((status = 204, description = "Sent, or no longer read"))
)]
pub(super) async fn stdin(
    State(state): State<AppState>,
    caller: Caller<Execute>,
    query: Query,
    Id(id): Id,
    request: Request,
) -> Result<StatusCode, ApiError> {
    query.reject_unknown()?;
    require_octets(request.headers())?;
    let Some(sender) = state.work.take_stdin(&id, caller.identity()).await? else {
        return Ok(StatusCode::NO_CONTENT);
    };
    let identity = caller.identity().clone();
    // In a task of its own: the handler is dropped when the connection is lost.
    let forwarding = forward(id, identity, request.into_body(), sender, state);
    tokio::spawn(forwarding).await.map_err(|_| Problem::new(Code::Internal, "internal error"))?;
    Ok(StatusCode::NO_CONTENT)
}

/// Forwards the body until its end or that of the program.
async fn forward(
    id: String,
    client: Identity,
    body: Body,
    mut sender: StdinSender,
    state: AppState,
) {
    let mut chunks = body.into_data_stream();
    loop {
        let chunk = tokio::select! {
            chunk = chunks.next() => chunk,
            () = sender.closed() => return,
        };
        match chunk {
            None => return,
            Some(Ok(chunk)) => {
                if sender.send(chunk).await.is_err() {
                    return;
                }
            }
            Some(Err(_)) => return cancel(&state.work, &id, &client).await,
        }
    }
}

/// Cancels an execution whose input is incomplete: the program would take the part for the whole.
async fn cancel(work: &Work, id: &str, client: &Identity) {
    if let Err(problem) = work.cancel(id, client).await {
        tracing::error!(
            id,
            reason = problem.detail,
            "failed to cancel after an incomplete standard input"
        );
    }
}

/// Refuses other content types. This also stops cross-site requests, which need a CORS preflight for this one.
fn require_octets(headers: &HeaderMap) -> Result<(), ApiError> {
    let content_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    if content_type.is_some_and(|content_type| content_type.eq_ignore_ascii_case(OCTET_STREAM)) {
        return Ok(());
    }
    let detail = "send the standard input with the header 'Content-Type: application/octet-stream'";
    Err(ApiError::with_status(StatusCode::UNSUPPORTED_MEDIA_TYPE, Code::InvalidBody, detail))
}
