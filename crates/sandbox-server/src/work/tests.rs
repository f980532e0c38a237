mod ends;
mod events;
mod restart;
mod taking;

use std::sync::Arc;
use std::time::Duration;

use sandbox::{ByteSize, Isolation, Sandbox};
use sandbox_api::{ExecuteRequest, Problem};
use sandbox_store::{Permission, Permissions, Scope, SqliteStore, Store};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{AnswerWith, EventStream, Ticket, Told, Work, WorkLimits};
use crate::callbacks::AddressPolicy;
use crate::config::Packages;
use crate::keys::Identity;
use crate::metrics::Metrics;
use crate::policy::{Caps, NetworkPermission, SharedCaches};
use crate::sandboxes::Sandboxes;

/// Longer than anything here takes; only a failure waits this long.
const TEST_TIMEOUT: Duration = Duration::from_secs(30);

/// A server without its HTTP, and the store it uses.
struct Bench {
    work: Work,
    store: Arc<dyn Store>,
    // Removed when the test ends.
    _directory: TempDir,
}

fn limits() -> WorkLimits {
    WorkLimits {
        max_code: ByteSize::kib(64),
        caps: Caps {
            timeout: Duration::from_mins(5),
            memory: ByteSize::mib(4096),
            disk: ByteSize::mib(1024),
            output: ByteSize::mib(16),
            pids: 1024,
        },
        caches: SharedCaches::default(),
        packages: Packages::On,
        environments: "/nonexistent".into(),
        concurrency: 2,
        memory_budget: ByteSize::mib(1024),
        share_per_key: 100,
        queue_bound: 100,
        queue_memory: ByteSize::mib(256),
        queue_memory_per_key: ByteSize::mib(64),
        quota_per_key: 50,
        limit_local: false,
        network: NetworkPermission { allowlist: true, ranges: Vec::new() },
        callback_allow: AddressPolicy::default(),
    }
}

impl Bench {
    async fn new(limits: WorkLimits) -> Self {
        let directory = TempDir::new().unwrap();
        let store = SqliteStore::open(&directory.path().join("test.db")).await.unwrap();
        let store: Arc<dyn Store> = Arc::new(store);
        let work = start(&store, &directory, limits);
        Self { work, store, _directory: directory }
    }

    async fn accept(&self, code: &str) -> Ticket {
        self.work.accept(bash(code), &nobody(), None, AnswerWith::Id).await.unwrap()
    }

    async fn refuse(&self, request: ExecuteRequest) -> Problem {
        self.work.accept(request, &nobody(), None, AnswerWith::Id).await.unwrap_err()
    }

    async fn report(&self, id: &str) -> Value {
        json(&self.work.wait(id, &nobody(), TEST_TIMEOUT).await.unwrap())
    }

    /// Waits until the program has printed this.
    async fn printed(&self, id: &str, text: &str) {
        let mut stream = self.work.events(id, &nobody(), 0).await.unwrap();
        while let Some(event) = within(stream.next()).await {
            if event.unwrap().json.contains(text) {
                return;
            }
        }
        panic!("{text:?} was not printed");
    }
}

fn start(store: &Arc<dyn Store>, directory: &TempDir, limits: WorkLimits) -> Work {
    let native = [Isolation::Native];
    let sandboxes = Sandboxes::start(&native, &native, || {
        let builder = Sandbox::builder().spare_slots(1).blocking_with(super::wait_in_place);
        builder.store_directory(directory.path().join("kept"))
    });
    Work::within(limits, Arc::new(sandboxes.unwrap()), Arc::clone(store), Arc::new(Metrics::new()))
}

/// What a client reads.
fn json(report: &Told) -> Value {
    serde_json::from_str(&report.json).unwrap()
}

fn bash(code: &str) -> ExecuteRequest {
    ExecuteRequest {
        language: "bash".into(),
        code: Some(code.into()),
        memory_limit_mb: Some(64),
        timeout_ms: Some(60_000),
        ..ExecuteRequest::default()
    }
}

/// The client on loopback.
fn nobody() -> Identity {
    let permissions = [Permission::Network, Permission::Packages].into();
    Identity { key: None, scopes: vec![Scope::Execute], permissions }
}

fn client(key: &str) -> Identity {
    Identity {
        key: Some(key.into()),
        scopes: vec![Scope::Execute],
        permissions: Permissions::new(),
    }
}

async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(TEST_TIMEOUT, future).await.expect("it took too long")
}

/// All events of a stream, read.
async fn all(mut stream: EventStream) -> Vec<Value> {
    let mut events = Vec::new();
    while let Some(event) = within(stream.next()).await {
        let event = event.unwrap();
        let value: Value = serde_json::from_str(&event.json).unwrap();
        assert_eq!(value["seq"], json!(event.seq));
        events.push(value);
    }
    events
}

/// What a stream said that the program printed.
fn printed(events: &[Value]) -> String {
    events.iter().filter_map(|event| event["data"].as_str()).collect()
}
