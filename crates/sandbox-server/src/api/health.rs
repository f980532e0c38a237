use axum::Json as Answer;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use serde::Serialize;
use utoipa::ToSchema;

use super::caller::{Caller, Read};
use crate::state::AppState;

/// That the server is there.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Health {
    /// `ok`.
    status: &'static str,
    /// The server's version.
    version: &'static str,
}

/// Whether the server is there.
#[utoipa::path(
    get,
    path = "/api/v1/health",
    tag = "server",
    operation_id = "health",
    responses((status = 200, description = "It is", body = Health)),
    security(())
)]
pub(super) async fn health() -> Answer<Health> {
    Answer(Health { status: "ok", version: env!("CARGO_PKG_VERSION") })
}

/// Figures for Prometheus: of the server as a whole, of no client by itself.
#[utoipa::path(
    get,
    path = "/metrics",
    tag = "server",
    operation_id = "metrics",
    responses((status = 200, description = "Metrics in the text format of Prometheus", body = String, content_type = "text/plain"))
)]
pub(super) async fn metrics(
    State(state): State<AppState>,
    _caller: Caller<Read>,
) -> impl IntoResponse {
    state.work.measure().await;
    let media_type = "text/plain; version=0.0.4; charset=utf-8";
    ([(CONTENT_TYPE, media_type)], state.metrics.encode())
}
