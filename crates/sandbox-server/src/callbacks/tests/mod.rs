//! Callbacks over real sockets, from a real store.

mod address;
mod receiver;
mod retry;
mod share;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use chrono::Utc;
use rustls::RootCertStore;
use sandbox::{ExecutionId, Status};
use sandbox_store::{
    AuditRecord, FinishedExecution, NewCallback, NewExecution, SqliteStore, Store,
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::JoinHandle;

use super::address::AddressPolicy;
use super::deliver::Deliveries;
use super::in_flight::{InFlight, Limits};
use super::schedule::RetrySchedule;
use super::send::Sender;
use crate::keys::Keys;
use crate::metrics::{Metrics, Reader};

use receiver::{Receiver, Reply};

/// Longer than anything here takes; only a failure waits this long.
const TEST_TIMEOUT: Duration = Duration::from_secs(30);

/// This machine, by whatever it calls itself.
const HERE: &str = "127.0.0.0/8, ::1";

/// What a server needs to send callbacks, and its sending of them.
struct Bench {
    store: Arc<dyn Store>,
    metrics: Arc<Metrics>,
    sending: JoinHandle<()>,
    // Removed when the test ends.
    _directory: TempDir,
}

/// What differs from test to test.
struct Setup {
    allow: &'static str,
    roots: RootCertStore,
    /// How long a receiver may take.
    timeout: Duration,
    /// So many tries after the first, at once.
    retries: usize,
    limits: Limits,
}

impl Default for Setup {
    fn default() -> Self {
        let roots = RootCertStore::empty();
        Self { allow: HERE, roots, timeout: TEST_TIMEOUT, retries: 3, limits: Limits::default() }
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.sending.abort();
    }
}

impl Bench {
    async fn new(setup: Setup) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(&directory.path().join("test.db")).await.unwrap();
        let store: Arc<dyn Store> = Arc::new(store);
        let metrics = Arc::new(Metrics::new());
        let policy: Arc<AddressPolicy> = Arc::new(setup.allow.parse().unwrap());
        let deliveries = Deliveries {
            store: Arc::clone(&store),
            secrets: Arc::new(Keys::load(&*store, directory.path()).await.unwrap()),
            metrics: Arc::clone(&metrics),
            sender: Sender::new(Arc::clone(&policy), setup.roots, setup.timeout).unwrap(),
            policy,
            schedule: RetrySchedule::new(vec![Duration::ZERO; setup.retries]),
            in_flight: InFlight::new(setup.limits),
        };
        let sending = tokio::spawn(Arc::new(deliveries).run());
        Self { store, metrics, sending, _directory: directory }
    }

    /// Remembers an execution that is over and whose report was promised there; gives its id.
    async fn finished(&self, url: &str) -> String {
        let id = ExecutionId::generate().to_string();
        let host = reqwest::Url::parse(url).unwrap().host_str().unwrap().to_owned();
        let new = NewExecution {
            id: id.clone(),
            owner: None,
            language: "python".to_owned(),
            request: "{}".to_owned(),
            labels: BTreeMap::new(),
            priority: 0,
            created_at: Utc::now(),
            started_at: None,
            idempotency: None,
            callback: Some(NewCallback { url: url.to_owned(), host }),
        };
        self.store.insert(new).await.unwrap();
        let audit = AuditRecord {
            at: Utc::now(),
            actor: None,
            action: "execute".to_owned(),
            subject: id.clone(),
            detail: json!({}),
        };
        let (report, events) = (report(&id).to_string().into(), Vec::new());
        let status = Status::Completed;
        let ending =
            FinishedExecution { id: id.clone(), status, report, events, at: Utc::now(), audit };
        self.store.finish(ending).await.unwrap();
        id
    }

    /// Waits until so many tries came to this.
    async fn counted(&self, outcome: &str, count: u32) {
        let line = format!("sandboxd_callbacks_total{{outcome=\"{outcome}\"}} {count}");
        let is_counted =
            || self.metrics.encode(Reader::Operator).lines().any(|found| found == line);
        within(async {
            while !is_counted() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
    }

    /// The one callback that was given up, once there is one.
    async fn given_up(&self) -> AuditRecord {
        self.counted("given_up", 1).await;
        within(async {
            loop {
                let mut log = self.store.audit_log(10).await.unwrap();
                log.retain(|record| record.action == "callback.given_up");
                if let [record] = &log[..] {
                    return record.clone();
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await
    }
}

fn report(id: &str) -> Value {
    json!({ "id": id, "status": "completed", "stdout": "é\n" })
}

async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(TEST_TIMEOUT, future).await.expect("it took too long")
}
