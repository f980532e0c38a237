use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use sandbox::with_causes;
use sandbox_api::Health;

use super::caller::{Caller, Read};
use crate::metrics::Reader;
use crate::state::AppState;

/// Check that the server is up.
#[utoipa::path(
    get,
    path = "/api/v1/health",
    tag = "server",
    operation_id = "health",
    responses((status = 200, description = "OK", body = Health)),
    security(())
)]
pub(super) async fn health() -> Json<Health> {
    let version = env!("CARGO_PKG_VERSION").to_owned();
    Json(Health { status: "ok".to_owned(), version })
}

/// Get metrics for Prometheus.
///
/// The metrics of each key are visible only with the scope `admin`, or on a server without keys.
#[utoipa::path(
    get,
    path = "/metrics",
    tag = "server",
    operation_id = "metrics",
    responses((status = 200, description = "Metrics in the Prometheus text format", body = String, content_type = "text/plain"))
)]
pub(super) async fn metrics(
    State(state): State<AppState>,
    caller: Caller<Read>,
) -> impl IntoResponse {
    measure(&state).await;
    let reader = if caller.is_operator() { Reader::Operator } else { Reader::Client };
    if reader == Reader::Operator {
        measure_caches(&state).await;
    }
    let media_type = "text/plain; version=0.0.4; charset=utf-8";
    ([(CONTENT_TYPE, media_type)], state.metrics.encode(reader))
}

/// Updates the sizes of the caches.
async fn measure_caches(state: &AppState) {
    let sandbox = Arc::clone(state.sandboxes.preferred());
    let measured = tokio::task::spawn_blocking(move || {
        let store = sandbox.store()?;
        let (compiled, packages) = (store.compiled().usage(), store.layers().packages());
        Some((compiled.ok()?.bytes, packages.ok()?.bytes))
    });
    if let Ok(Some((compiled, packages))) = measured.await {
        state.metrics.cached("compiled", compiled);
        state.metrics.cached("packages", packages);
    }
}

/// Updates the gauges that no event updates.
async fn measure(state: &AppState) {
    state.work.measure().await;
    state.metrics.keep_keys(|key| state.keys.is_valid(key));
    if let Some(figures) = state.sandboxes.pool() {
        state.metrics.pool(&figures);
    }
    match state.store.size().await {
        Ok(bytes) => state.metrics.store_size(bytes),
        Err(error) => {
            tracing::warn!(error = with_causes(&error), "failed to get the size of the database");
        }
    }
}
