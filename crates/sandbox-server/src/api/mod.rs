//! HTTP: the routes, and what every request goes through before it reaches one.
//!
//! From the outside in: a request gets an id and its answer is finished ([`finish`]), browsers are told
//! what they may do (`cors`), a panic becomes a problem, the client is recognised and its rate is
//! limited ([`door`]); then a handler takes the request apart with our own extractors, so that
//! whatever is wrong with it is told as a [`Problem`](sandbox_api::Problem) too.

mod execute;

mod batch;
mod executions;
mod stream;

mod environments;
mod health;
mod ready;
mod runtimes;
mod workspaces;

mod docs;
mod home;
mod narrow;
mod openapi;
mod schema;

mod asked;
mod body;
mod caller;
mod cors;
mod door;
mod finish;
mod limiter;
mod query;
mod refusal;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use axum::http::{Method, Uri};
use axum::middleware::from_fn_with_state;
use axum::routing::{get, post};
use axum::{Extension, Router};
use sandbox_api::{Code, Problem};
use tower_http::catch_panic::CatchPanicLayer;

use self::door::Door;
use self::finish::Finish;
use self::ready::Trial;
use self::refusal::Refusal;
use crate::state::AppState;

/// Everything the server answers. Each request must come with its peer's address, as an extension
/// (`ConnectInfo<SocketAddr>`): clients without keys are told apart by them.
pub(crate) fn router(state: AppState) -> Router {
    let guarded = Router::new()
        .route("/api/v1/execute", post(execute::execute))
        .route("/api/v1/execute/{id}", get(execute::report).delete(execute::cancel))
        .route("/api/v1/execute/{id}/stream", get(stream::stream))
        .route("/api/v1/batch", post(batch::batch))
        .route("/api/v1/executions", get(executions::list))
        .route(
            "/api/v1/runtimes",
            get(runtimes::list).layer(Extension(Arc::<runtimes::Catalog>::default())),
        )
        .route("/api/v1/environments", get(environments::list).post(environments::build))
        .route("/api/v1/environments/{name}", get(environments::one).delete(environments::remove))
        .route("/api/v1/workspaces", get(workspaces::list))
        .route(
            "/api/v1/workspaces/{name}",
            get(workspaces::show).put(workspaces::import).delete(workspaces::remove),
        )
        .route("/api/v1/workspaces/{name}/export", get(workspaces::export))
        .route("/metrics", get(health::metrics))
        .route_layer(from_fn_with_state(Door::new(&state), door::pass));
    let open = Router::new()
        .route("/api/v1/health", get(health::health))
        .route("/api/v1/ready", get(ready::ready).layer(Extension(Arc::<Trial>::default())))
        .route("/", get(home::home))
        .route("/openapi.json", get(openapi::document))
        .layer(Extension(openapi::Documents::new(&state.config)))
        .route("/docs", get(docs::page));
    let router = guarded
        .merge(open)
        .fallback(no_such_path)
        .method_not_allowed_fallback(no_such_method)
        .layer(CatchPanicLayer::custom(refusal::of_panic));
    let router = match cors::layer(&state.config) {
        Some(cors) => router.layer(cors),
        None => router,
    };
    let finish = from_fn_with_state(Finish::new(&state), finish::finish);
    router.layer(finish).with_state(state)
}

async fn no_such_path(uri: Uri) -> Refusal {
    Problem::new(Code::NotFound, format!("there is nothing at {}", uri.path())).into()
}

async fn no_such_method(method: Method, uri: Uri) -> Refusal {
    let detail = format!("{} does not take {method}", uri.path());
    Problem::new(Code::MethodNotAllowed, detail).into()
}
