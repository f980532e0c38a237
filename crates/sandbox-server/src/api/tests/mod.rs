//! Tests of the API through its router: without a socket, but with a real store, workers and sandboxes.

mod batch;
mod caches;
mod callbacks;
mod documents;
mod environments;
mod execute;
mod history;
mod hostile;
mod isolation;
mod keys;
mod limits;
mod malformed;
mod network;
mod permissions;
mod stdin;
mod stream;
mod volumes;
mod workspaces;

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::BodyExt as _;
use sandbox::Sandbox;
use sandbox_scheduler::{Sandboxes, Scheduler, block_in_place};
use sandbox_store::{LocalQueue, Permission, Scope, Store};
use serde_json::{Value, json};
use tempfile::TempDir;
use tower::ServiceExt as _;

use crate::config::{Config, HostInfo, Layer, LoadedSettings};
use crate::environments::ClientEnvironments;
use crate::keys::Keys;
use crate::metrics::Metrics;
use crate::observer::ServerObserver;
use crate::serve::open_store;
use crate::state::AppState;
use crate::telemetry::Telemetry;
use crate::work::{Work, workspace};

/// A server without a listening socket.
struct Server {
    router: Router,
    state: AppState,
    _directory: TempDir,
}

/// A response.
#[derive(Debug)]
struct TestResponse {
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
}

impl Server {
    async fn start() -> Self {
        Self::with(|_| {}).await
    }

    /// Starts a server with a changed configuration.
    async fn with(change: impl FnOnce(&mut Config)) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut config = default_config(&directory);
        change(&mut config);
        let store: Arc<dyn Store> = open_store(&config).await.unwrap();
        let keys = Arc::new(Keys::load(&*store, &config.data_dir).await.unwrap());
        let sandboxes = Sandboxes::start(&config.isolations, &config.isolation_order, || {
            Sandbox::builder()
                .blocking_with(block_in_place)
                .volumes_from(config.volumes_from.iter().cloned())
                .store_directory(directory.path().join("store"))
                .workspaces(workspace::of_server(&config))
        });
        let sandboxes = Arc::new(sandboxes.unwrap());
        let config = Arc::new(config);
        let metrics = Arc::new(Metrics::new());
        let observer = Arc::new(ServerObserver::new(Arc::clone(&metrics)));
        let queue = Arc::new(LocalQueue::new(config.queue_bound));
        let scheduler = Scheduler::start((&*config).into(), queue, Arc::clone(&store), observer);
        let scheduler = Arc::new(scheduler);
        let environments = ClientEnvironments::new(
            Arc::clone(sandboxes.for_packages()),
            Arc::clone(&store),
            Arc::clone(&scheduler),
            &config,
        );
        let environments = Arc::new(environments);
        let work = Work::new(scheduler, Arc::clone(&sandboxes), &config, Arc::clone(&metrics));
        let work = Arc::new(work);
        let state = AppState {
            work,
            environments,
            sandboxes,
            store,
            keys,
            config,
            metrics,
            telemetry: Telemetry::default(),
        };
        Self { router: super::router(state.clone()), state, _directory: directory }
    }

    /// Creates a key. Once there is a key, the server refuses requests without one.
    async fn key(&self, scopes: &[Scope]) -> String {
        self.create_key(scopes, &[]).await
    }

    /// Creates a key with the scope `execute` and these permissions.
    async fn permitted_key(&self, permissions: &[Permission]) -> String {
        self.create_key(&[Scope::Execute], permissions).await
    }

    async fn create_key(&self, scopes: &[Scope], permissions: &[Permission]) -> String {
        let store = &*self.state.store;
        let permissions = permissions.iter().copied().collect();
        let created = self.state.keys.create(store, "a test", scopes.to_vec(), permissions).await;
        let (_, key) = created.unwrap();
        self.state.keys.reload(store).await.unwrap();
        key.reveal().to_owned()
    }

    async fn send(&self, request: Request<Body>) -> TestResponse {
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        TestResponse { status: parts.status, headers: parts.headers, body }
    }

    async fn get(&self, path: &str) -> TestResponse {
        self.send(request(Method::GET, path, &[], Body::empty())).await
    }

    async fn get_with(&self, path: &str, headers: &[(&str, &str)]) -> TestResponse {
        self.send(request(Method::GET, path, headers, Body::empty())).await
    }

    async fn delete(&self, path: &str) -> TestResponse {
        self.send(request(Method::DELETE, path, &[], Body::empty())).await
    }

    async fn post(&self, path: &str, body: &Value) -> TestResponse {
        self.post_with(path, body, &[]).await
    }

    async fn post_with(&self, path: &str, body: &Value, headers: &[(&str, &str)]) -> TestResponse {
        let mut all = vec![("content-type", "application/json")];
        all.extend(headers);
        self.send(request(Method::POST, path, &all, Body::from(body.to_string()))).await
    }
}

impl TestResponse {
    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// Asserts the status, and returns the body.
    #[track_caller]
    fn expect(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{self:?}");
        self.json()
    }

    /// Asserts that the response is a complete problem with this status and code, and returns its detail.
    #[track_caller]
    fn problem(&self, status: u16, code: &str) -> String {
        let problem = self.expect(status);
        assert_eq!(self.header("content-type"), "application/problem+json");
        assert_eq!(problem["status"], status, "{problem}");
        assert_eq!(problem["code"], code, "{problem}");
        assert!(!problem["title"].as_str().unwrap().is_empty(), "{problem}");
        assert_eq!(problem["request_id"], self.header("x-request-id"), "{problem}");
        let needs_retry_after = matches!(status, 429 | 503);
        assert_eq!(!self.header("retry-after").is_empty(), needs_retry_after, "{self:?}");
        problem["detail"].as_str().unwrap().to_owned()
    }
}

fn default_config(directory: &TempDir) -> Config {
    let host = HostInfo {
        home: Some(directory.path().to_owned()),
        config_home: Some("/nonexistent".into()),
        cores: 2,
        available_memory: Some(4 << 30),
        ..HostInfo::default()
    };
    let settings = LoadedSettings::load(Layer::default(), None, &host).unwrap();
    settings.config().unwrap()
}

fn request(method: Method, path: &str, headers: &[(&str, &str)], body: Body) -> Request<Body> {
    let mut builder = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        builder = builder.header(*name, *value);
    }
    builder.body(body).unwrap()
}

fn python(code: &str) -> Value {
    json!({"language": "python", "code": code})
}

/// A program that runs until it is cancelled.
fn endless() -> Value {
    json!({"language": "python", "code": "import time\nwhile True: time.sleep(1)", "timeout_ms": 60_000})
}

fn text_of(response: &TestResponse) -> &str {
    std::str::from_utf8(&response.body).unwrap()
}
