//! The HTTP API: routes, handlers and middleware.
//!
//! A request passes these layers, outermost first: [`request_log`] (request id, log, metrics, traces), [`cors`], the
//! panic handler, and [`auth`] (API key, rate limit). Handlers then use extractors of this crate ([`body`], [`query`],
//! [`caller`]), so that every error becomes a [`Problem`](sandbox_api::Problem).

mod execute;

mod batch;
mod executions;
mod stdin;
mod stream;

mod environments;
mod health;
mod ready;
mod runtimes;
mod workspaces;

mod openapi;
mod pages;
mod parameters;
mod restrict_schema;

mod auth;
mod body;
mod caller;
mod cors;
mod error;
mod peer;
mod query;
mod rate_limit;
mod request_log;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use axum::http::{Method, Uri};
use axum::middleware::from_fn_with_state;
use axum::routing::{get, post};
use axum::{Extension, Router};
use sandbox_api::{Code, Problem};
use tower_http::catch_panic::CatchPanicLayer;

use self::auth::Auth;
use self::error::ApiError;
pub(crate) use self::peer::Peer;
use self::ready::ReadinessCheck;
use self::request_log::RequestLog;
use crate::state::AppState;

/// The router of the API. Each request needs its [`Peer`] as an extension: authentication and the rate limit of clients
/// without keys use it.
pub(crate) fn router(state: AppState) -> Router {
    let authenticated = Router::new()
        .route("/api/v1/execute", post(execute::execute))
        .route("/api/v1/execute/{id}", get(execute::report).delete(execute::cancel))
        .route("/api/v1/execute/{id}/stdin", post(stdin::stdin))
        .route("/api/v1/execute/{id}/stream", get(stream::stream))
        .route("/api/v1/batch", post(batch::batch))
        .route("/api/v1/executions", get(executions::list))
        .route(
            "/api/v1/runtimes",
            get(runtimes::list).layer(Extension(Arc::<runtimes::Catalog>::default())),
        )
        .route("/api/v1/environments", get(environments::list).post(environments::build))
        .route("/api/v1/environments/{name}", get(environments::get).delete(environments::remove))
        .route("/api/v1/workspaces", get(workspaces::list))
        .route(
            "/api/v1/workspaces/{name}",
            get(workspaces::get).put(workspaces::import).delete(workspaces::remove),
        )
        .route("/api/v1/workspaces/{name}/export", get(workspaces::export))
        .route("/metrics", get(health::metrics))
        .route_layer(from_fn_with_state(Auth::new(&state), auth::authenticate));
    let open = Router::new()
        .route("/api/v1/health", get(health::health))
        .route(
            "/api/v1/ready",
            get(ready::ready).layer(Extension(Arc::<ReadinessCheck>::default())),
        )
        .route("/", get(pages::index))
        .route("/openapi.json", get(openapi::document))
        .layer(Extension(openapi::Documents::new(&state.config)))
        .route("/docs", get(pages::docs));
    let router = authenticated
        .merge(open)
        .fallback(path_not_found)
        .method_not_allowed_fallback(method_not_allowed)
        .layer(CatchPanicLayer::custom(error::from_panic));
    let router = match cors::layer(&state.config) {
        Some(cors) => router.layer(cors),
        None => router,
    };
    let log = from_fn_with_state(RequestLog::new(&state), request_log::log_request);
    router.layer(log).with_state(state)
}

async fn path_not_found(uri: Uri) -> ApiError {
    Problem::new(Code::NotFound, format!("no such path: {}", uri.path())).into()
}

async fn method_not_allowed(method: Method, uri: Uri) -> ApiError {
    let detail = format!("{} does not support {method}", uri.path());
    Problem::new(Code::MethodNotAllowed, detail).into()
}
