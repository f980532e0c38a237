use std::fs::File;
use std::io::{self, Seek as _, Write};
use std::path::Path;
use std::time::Duration;

use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::{FromRequestParts, RawPathParams, Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use chrono::{DateTime, SecondsFormat, Utc};
use futures_util::StreamExt as _;
use futures_util::stream;
use sandbox::{Workspace, WorkspaceError, WorkspaceName, Workspaces};
use sandbox_api::{Code, Problem, WorkspaceEntry};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use super::caller::{Caller, Execute, Read};
use super::error::ApiError;
use super::query::Query;
use crate::keys::Identity;
use crate::state::AppState;
use crate::work::workspace::{owner, problem};

/// Chunks of an export in memory at a time.
const MAX_BUFFERED_CHUNKS: usize = 4;
const CHUNK_SIZE: usize = 1 << 16;
/// Time for a client to send an archive.
const UPLOAD_TIMEOUT: Duration = Duration::from_mins(5);
/// Estimate of the header, padding and long name of one file in an archive.
const ENTRY_OVERHEAD: u64 = 4096;

/// A workspace name in a path, not yet validated.
pub(super) struct Name(String);

/// List workspaces.
#[utoipa::path(
    get,
    path = "/api/v1/workspaces",
    tag = "workspaces",
    operation_id = "workspaces",
    responses((status = 200, description = "The client's workspaces, by name", body = Vec<WorkspaceEntry>))
)]
pub(super) async fn list(
    State(state): State<AppState>,
    caller: Caller<Read>,
    query: Query,
) -> Result<Json<Vec<WorkspaceEntry>>, ApiError> {
    query.reject_unknown()?;
    let listed = with_own(&state, caller.identity(), Workspaces::list).await?;
    Ok(Json(listed.iter().map(entry).collect()))
}

/// Get a workspace.
#[utoipa::path(
    get,
    path = "/api/v1/workspaces/{name}",
    tag = "workspaces",
    operation_id = "workspace",
    params(("name" = String, Path, description = "The name of the workspace")),
    responses((status = 200, description = "The workspace", body = WorkspaceEntry))
)]
pub(super) async fn get(
    State(state): State<AppState>,
    caller: Caller<Read>,
    query: Query,
    name: Name,
) -> Result<Json<WorkspaceEntry>, ApiError> {
    query.reject_unknown()?;
    let name = name.existing()?;
    let found = with_own(&state, caller.identity(), move |own| own.find(&name)).await?;
    Ok(Json(entry(&found)))
}

/// Remove a workspace and its files.
#[utoipa::path(
    delete,
    path = "/api/v1/workspaces/{name}",
    tag = "workspaces",
    operation_id = "remove_workspace",
    params(("name" = String, Path, description = "The name of the workspace")),
    responses((status = 204, description = "Removed"))
)]
pub(super) async fn remove(
    State(state): State<AppState>,
    caller: Caller<Execute>,
    query: Query,
    name: Name,
) -> Result<StatusCode, ApiError> {
    query.reject_unknown()?;
    let name = name.existing()?;
    with_own(&state, caller.identity(), move |own| own.remove(&name)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Export a workspace as a tar archive.
///
/// The archive is untrusted: programs choose the targets of its symbolic links.
#[utoipa::path(
    get,
    path = "/api/v1/workspaces/{name}/export",
    tag = "workspaces",
    operation_id = "export_workspace",
    params(("name" = String, Path, description = "The name of the workspace")),
    responses((status = 200, description = "The archive", content_type = "application/x-tar", body = Vec<u8>))
)]
pub(super) async fn export(
    State(state): State<AppState>,
    caller: Caller<Read>,
    query: Query,
    name: Name,
) -> Result<Response, ApiError> {
    query.reject_unknown()?;
    let name = name.existing()?;
    let own = workspaces_of(&state, caller.identity())?;
    let (chunks, mut receiver) = mpsc::channel(MAX_BUFFERED_CHUNKS);
    let (failed, failure) = oneshot::channel();
    // Look it up before the response starts: 404 is not possible later.
    let found = with_own(&state, caller.identity(), {
        let name = name.clone();
        move |own| own.find(&name)
    });
    found.await?;
    let export = state.work.begin_export(caller.identity())?;
    let writer =
        ChunkWriter { chunks, runtime: Handle::current(), timeout: state.config.write_timeout };
    tokio::task::spawn_blocking(move || {
        // The thread is occupied for as long as the client reads.
        let _export = export;
        if let Err(error) = own.export(&name, io::BufWriter::with_capacity(CHUNK_SIZE, writer)) {
            // Aborts the response. Fails if the client has disconnected.
            let _ = failed.send(io::Error::other(error));
        }
    });
    let chunks = stream::poll_fn(move |context| receiver.poll_recv(context)).map(Ok);
    // After the last chunk: an error, unless the export is complete.
    let end = stream::once(failure).filter_map(async |failure| failure.ok().map(Err::<Bytes, _>));
    let body = Body::from_stream(chunks.chain(end));
    Ok(([(CONTENT_TYPE, "application/x-tar")], body).into_response())
}

/// Create or replace a workspace from a tar archive.
///
/// Imports files, directories and symbolic links. All or nothing: an invalid archive changes nothing.
#[utoipa::path(
    put,
    path = "/api/v1/workspaces/{name}",
    tag = "workspaces",
    operation_id = "import_workspace",
    params(("name" = String, Path, description = "The name of the workspace", pattern = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")),
    request_body(content = Vec<u8>, content_type = "application/x-tar"),
    responses((status = 200, description = "The workspace", body = WorkspaceEntry))
)]
pub(super) async fn import(
    State(state): State<AppState>,
    caller: Caller<Execute>,
    query: Query,
    name: Name,
    request: Request,
) -> Result<Json<WorkspaceEntry>, ApiError> {
    query.reject_unknown()?;
    let name: WorkspaceName =
        name.0.parse().map_err(|error| ApiError::invalid("the name", error))?;
    require_tar(request.headers())?;
    let quota = workspaces_of(&state, caller.identity())?.quota();
    let max = quota.bytes.as_u64().saturating_add(quota.files.saturating_mul(ENTRY_OVERHEAD));
    let import = state.work.begin_import(caller.identity())?;
    // Receive all of it first, so that a slow client blocks no execution.
    let spooled = spool(request.into_body(), &state.config.data_dir, max);
    let archive = timeout(UPLOAD_TIMEOUT, spooled).await;
    let archive = archive.unwrap_or_else(|_| {
        let detail = format!("the archive did not arrive within {} s", UPLOAD_TIMEOUT.as_secs());
        Err(ApiError::with_status(StatusCode::REQUEST_TIMEOUT, Code::InvalidBody, detail))
    })?;
    let imported = with_own(&state, caller.identity(), move |own| {
        // Counts as an import until the archive is gone, even if the client disconnects.
        let _import = import;
        own.import(&name, archive)
    });
    let imported = imported.await?;
    Ok(Json(entry(&imported)))
}

/// Refuses other content types. This also stops cross-site requests, which need a CORS preflight for this one.
fn require_tar(headers: &HeaderMap) -> Result<(), ApiError> {
    let content_type =
        headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
    if content_type.eq_ignore_ascii_case("application/x-tar") {
        return Ok(());
    }
    let detail = "send a tar archive, with the header 'Content-Type: application/x-tar'";
    Err(ApiError::with_status(StatusCode::UNSUPPORTED_MEDIA_TYPE, Code::InvalidBody, detail))
}

/// Writes a body to an unnamed temporary file.
async fn spool(body: Body, directory: &Path, max: u64) -> Result<File, ApiError> {
    let failed = |error: &dyn std::fmt::Display| {
        tracing::error!(%error, "failed to write an archive to a temporary file");
        ApiError::from(Problem::new(
            Code::Internal,
            "failed to write the archive to a temporary file",
        ))
    };
    let mut file = tempfile::tempfile_in(directory).map_err(|error| failed(&error))?;
    let mut chunks = body.into_data_stream();
    let mut length = 0;
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(|error| {
            Problem::new(Code::InvalidBody, format!("failed to read the body: {error}"))
        })?;
        length += chunk.len() as u64;
        if length > max {
            let detail = format!("the body exceeds the maximum of {max} bytes");
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

fn workspaces_of(state: &AppState, identity: &Identity) -> Result<Workspaces, ApiError> {
    let all = state.sandboxes.preferred().workspaces().map_err(|error| problem(&error))?;
    Ok(all.of_owner(&owner(identity.key.as_deref())))
}

/// Does something with the client's workspaces, on a blocking thread.
async fn with_own<T: Send + 'static>(
    state: &AppState,
    identity: &Identity,
    act: impl FnOnce(&Workspaces) -> Result<T, WorkspaceError> + Send + 'static,
) -> Result<T, ApiError> {
    let own = workspaces_of(state, identity)?;
    let done = tokio::task::spawn_blocking(move || act(&own)).await;
    let done = done.map_err(|_| {
        Problem::new(Code::Internal, "internal error while accessing the workspace")
    })?;
    done.map_err(|error| problem(&error).into())
}

/// Sends each write as a chunk; blocks while the client reads more slowly. A client that reads nothing for too long
/// must not keep the thread from others: over HTTP/2, its connection may be busy all the time.
struct ChunkWriter {
    chunks: mpsc::Sender<Bytes>,
    runtime: Handle,
    timeout: Duration,
}

impl Write for ChunkWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let sending = self.chunks.send(Bytes::copy_from_slice(bytes));
        let sent = self.runtime.block_on(async { timeout(self.timeout, sending).await });
        sent?.map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Name {
    /// The name, for a workspace that must exist: an invalid name is not found.
    fn existing(&self) -> Result<WorkspaceName, ApiError> {
        let unknown = |_| Problem::new(Code::NotFound, "no workspace has this name");
        self.0.parse().map_err(unknown).map_err(ApiError::from)
    }
}

impl<S: Sync + Send> FromRequestParts<S> for Name {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let unknown = || Problem::new(Code::NotFound, "no workspace has this name");
        // A path that cannot be decoded matches no workspace.
        let params = RawPathParams::from_request_parts(parts, state).await;
        let params = params.map_err(|_| unknown())?;
        let name = params.iter().find(|(name, _)| *name == "name");
        name.map(|(_, name)| Self(name.to_owned())).ok_or_else(|| unknown().into())
    }
}

fn entry(workspace: &Workspace) -> WorkspaceEntry {
    let rfc3339 = |time: DateTime<Utc>| time.to_rfc3339_opts(SecondsFormat::Secs, true);
    WorkspaceEntry {
        name: workspace.name.to_string(),
        bytes: workspace.size.bytes,
        files: workspace.size.files,
        saved_at: rfc3339(workspace.saved_at),
        used_at: rfc3339(workspace.used_at),
        in_use: workspace.in_use,
    }
}
