use std::fs::File;
use std::io::{self, Seek as _, Write};
use std::path::Path;
use std::time::Duration;

use axum::Json as Answer;
use axum::body::{Body, Bytes};
use axum::extract::{FromRequestParts, RawPathParams, Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use chrono::SecondsFormat;
use futures_util::StreamExt as _;
use futures_util::stream;
use sandbox::{Workspace, WorkspaceError, WorkspaceName, Workspaces};
use sandbox_api::{Code, Problem};
use serde::Serialize;
use tokio::sync::mpsc;
use utoipa::ToSchema;

use super::caller::{Caller, Execute, Read};
use super::query::Query;
use super::refusal::Refusal;
use crate::keys::Identity;
use crate::state::AppState;
use crate::work::workspace::{owner, problem};

/// An archive on its way: pieces in memory at once, and how large one is.
const PIECES: usize = 4;
const PIECE: usize = 1 << 16;
/// A client that has not sent its archive by then holds a connection for nothing.
const TIME_TO_SEND: Duration = Duration::from_mins(5);
/// Headers, padding and long names of one file in an archive, about.
const OVERHEAD: u64 = 4096;

/// A directory that outlives executions.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct WorkspaceEntry {
    name: String,
    /// Bytes in its files.
    bytes: u64,
    /// Files, directories and links.
    files: u64,
    /// When it was written last.
    #[schema(format = DateTime)]
    saved_at: String,
    /// When an execution used it last.
    #[schema(format = DateTime)]
    used_at: String,
    /// Whether an execution has it that may replace it.
    in_use: bool,
}

/// The name in a path.
pub(super) struct Name(String);

/// Your workspaces.
#[utoipa::path(
    get,
    path = "/api/v1/workspaces",
    tag = "workspaces",
    operation_id = "workspaces",
    responses((status = 200, description = "All of them, by name", body = Vec<WorkspaceEntry>))
)]
pub(super) async fn list(
    State(state): State<AppState>,
    caller: Caller<Read>,
    query: Query,
) -> Result<Answer<Vec<WorkspaceEntry>>, Refusal> {
    query.end()?;
    let listed = with_own(&state, caller.identity(), Workspaces::list).await?;
    Ok(Answer(listed.into_iter().map(WorkspaceEntry::from).collect()))
}

/// One of them.
#[utoipa::path(
    get,
    path = "/api/v1/workspaces/{name}",
    tag = "workspaces",
    operation_id = "workspace",
    params(("name" = String, Path, description = "The workspace")),
    responses((status = 200, description = "What is known of it", body = WorkspaceEntry))
)]
pub(super) async fn show(
    State(state): State<AppState>,
    caller: Caller<Read>,
    query: Query,
    name: Name,
) -> Result<Answer<WorkspaceEntry>, Refusal> {
    query.end()?;
    let name = name.of_existing()?;
    let found = with_own(&state, caller.identity(), move |own| own.find(&name)).await?;
    Ok(Answer(found.into()))
}

/// Remove it with all that is in it.
#[utoipa::path(
    delete,
    path = "/api/v1/workspaces/{name}",
    tag = "workspaces",
    operation_id = "remove_workspace",
    params(("name" = String, Path, description = "The workspace")),
    responses((status = 204, description = "It is gone"))
)]
pub(super) async fn remove(
    State(state): State<AppState>,
    caller: Caller<Execute>,
    query: Query,
    name: Name,
) -> Result<StatusCode, Refusal> {
    query.end()?;
    let name = name.of_existing()?;
    with_own(&state, caller.identity(), move |own| own.remove(&name)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Its content, as a tar archive.
///
/// Links in it lead where the program made them lead: unpack it as an archive from a stranger.
#[utoipa::path(
    get,
    path = "/api/v1/workspaces/{name}/export",
    tag = "workspaces",
    operation_id = "export_workspace",
    params(("name" = String, Path, description = "The workspace")),
    responses((status = 200, description = "The archive", content_type = "application/x-tar", body = Vec<u8>))
)]
pub(super) async fn export(
    State(state): State<AppState>,
    caller: Caller<Read>,
    query: Query,
    name: Name,
) -> Result<Response, Refusal> {
    query.end()?;
    let name = name.of_existing()?;
    let own = own(&state, caller.identity())?;
    let (sender, receiver) = mpsc::channel::<io::Result<Bytes>>(PIECES);
    // Whether there is one is known before the answer begins.
    let found = with_own(&state, caller.identity(), {
        let name = name.clone();
        move |own| own.find(&name)
    });
    found.await?;
    let export = state.work.begin_export(caller.identity())?;
    tokio::task::spawn_blocking(move || {
        // As long as the client reads, this thread is taken.
        let _export = export;
        let into = io::BufWriter::with_capacity(PIECE, Pieces(sender.clone()));
        if let Err(error) = own.export(&name, into) {
            // The client sees an answer that breaks off; if it is gone itself, nobody does.
            let _ = sender.blocking_send(Err(io::Error::other(error)));
        }
    });
    let pieces = stream::unfold(receiver, |mut receiver| async {
        let piece = receiver.recv().await?;
        Some((piece, receiver))
    });
    Ok(([(CONTENT_TYPE, "application/x-tar")], Body::from_stream(pieces)).into_response())
}

/// Make it of a tar archive, in place of one that may be there.
///
/// Files, directories and symbolic links are taken, all of them or none.
#[utoipa::path(
    put,
    path = "/api/v1/workspaces/{name}",
    tag = "workspaces",
    operation_id = "import_workspace",
    params(("name" = String, Path, description = "The workspace", pattern = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")),
    request_body(content = Vec<u8>, content_type = "application/x-tar"),
    responses((status = 200, description = "What it holds now", body = WorkspaceEntry))
)]
pub(super) async fn import(
    State(state): State<AppState>,
    caller: Caller<Execute>,
    query: Query,
    name: Name,
    request: Request,
) -> Result<Answer<WorkspaceEntry>, Refusal> {
    query.end()?;
    let name: WorkspaceName =
        name.0.parse().map_err(|error| Refusal::invalid("the name", error))?;
    refuse_other_types(request.headers())?;
    let quota = own(&state, caller.identity())?.quota();
    let most = quota.bytes.as_u64().saturating_add(quota.files.saturating_mul(OVERHEAD));
    let import = state.work.begin_import(caller.identity())?;
    // All of it first: nobody else's work waits for a client that sends slowly.
    let spooled = spool(request.into_body(), &state.config.data_dir, most);
    let archive = tokio::time::timeout(TIME_TO_SEND, spooled).await;
    let archive = archive.unwrap_or_else(|_| {
        let detail = format!("the archive did not arrive within {} s", TIME_TO_SEND.as_secs());
        Err(Refusal::with_status(StatusCode::REQUEST_TIMEOUT, Code::InvalidBody, detail))
    })?;
    let taken = with_own(&state, caller.identity(), move |own| {
        // Also if the client goes away: the archive takes room until then.
        let _import = import;
        own.import(&name, archive)
    });
    let taken = taken.await?;
    Ok(Answer(taken.into()))
}

/// Other types are refused also because a page of another site could send them without asking.
fn refuse_other_types(headers: &HeaderMap) -> Result<(), Refusal> {
    let given = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
    if given.eq_ignore_ascii_case("application/x-tar") {
        return Ok(());
    }
    let detail = "send a tar archive, with the header 'Content-Type: application/x-tar'";
    Err(Refusal::with_status(StatusCode::UNSUPPORTED_MEDIA_TYPE, Code::InvalidBody, detail))
}

/// A body in a file that has no name.
async fn spool(body: Body, directory: &Path, most: u64) -> Result<File, Refusal> {
    let failed = |error: &dyn std::fmt::Display| {
        tracing::error!(%error, "an archive could not be written down");
        Refusal::from(Problem::new(Code::Internal, "the archive could not be written down"))
    };
    let mut file = tempfile::tempfile_in(directory).map_err(|error| failed(&error))?;
    let mut chunks = body.into_data_stream();
    let mut length = 0;
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(|error| {
            Problem::new(Code::InvalidBody, format!("the body broke off: {error}"))
        })?;
        length += chunk.len() as u64;
        if length > most {
            let detail = format!("the body is larger than {most} bytes, which is the most taken");
            return Err(Problem::new(Code::CodeTooLarge, detail).into());
        }
        let written = tokio::task::spawn_blocking(move || {
            file.write_all(&chunk)?;
            Ok::<File, io::Error>(file)
        });
        let written = written.await.map_err(|error| failed(&error))?;
        file = written.map_err(|error| failed(&error))?;
    }
    file.rewind().map_err(|error| failed(&error))?;
    Ok(file)
}

fn own(state: &AppState, identity: &Identity) -> Result<Workspaces, Refusal> {
    let all = state.sandboxes.preferred().workspaces().map_err(|error| problem(&error))?;
    Ok(all.of_owner(&owner(identity.key.as_deref())))
}

/// Does something with the caller's workspaces where it holds nobody up.
async fn with_own<T: Send + 'static>(
    state: &AppState,
    identity: &Identity,
    act: impl FnOnce(&Workspaces) -> Result<T, WorkspaceError> + Send + 'static,
) -> Result<T, Refusal> {
    let own = own(state, identity)?;
    let done = tokio::task::spawn_blocking(move || act(&own)).await;
    let done = done.map_err(|_| Problem::new(Code::Internal, "the workspace cannot be used"))?;
    done.map_err(|error| problem(&error).into())
}

/// Sends what is written in pieces, as fast as the client takes them.
struct Pieces(mpsc::Sender<io::Result<Bytes>>);

impl Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let piece = Bytes::copy_from_slice(bytes);
        let sent = self.0.blocking_send(Ok(piece));
        sent.map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Name {
    /// A text that can name no workspace names none that is there.
    fn of_existing(&self) -> Result<WorkspaceName, Refusal> {
        let unknown = |_| Problem::new(Code::NotFound, "there is no workspace of this name");
        self.0.parse().map_err(unknown).map_err(Refusal::from)
    }
}

impl<S: Sync + Send> FromRequestParts<S> for Name {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        let unknown = || Problem::new(Code::NotFound, "there is no workspace of this name");
        // A path that cannot be decoded names nothing either.
        let params = RawPathParams::from_request_parts(parts, state).await;
        let params = params.map_err(|_| unknown())?;
        let name = params.iter().find(|(name, _)| *name == "name");
        name.map(|(_, name)| Self(name.to_owned())).ok_or_else(|| unknown().into())
    }
}

impl From<Workspace> for WorkspaceEntry {
    fn from(workspace: Workspace) -> Self {
        Self {
            name: workspace.name.to_string(),
            bytes: workspace.size.bytes,
            files: workspace.size.files,
            saved_at: workspace.saved_at.to_rfc3339_opts(SecondsFormat::Secs, true),
            used_at: workspace.used_at.to_rfc3339_opts(SecondsFormat::Secs, true),
            in_use: workspace.in_use,
        }
    }
}
