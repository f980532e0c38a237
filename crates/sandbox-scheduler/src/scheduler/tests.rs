mod admission;
mod ends;
mod events;
mod leases;
mod restart;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use sandbox::{
    ByteSize, EventKind, ExecutionId, Isolation, Limits, Report, Request, RequestBuilder, Sandbox,
    with_causes,
};
use sandbox_store::{Idempotency, LocalQueue, Permissions, Queue, Scope, SqliteStore, Store};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::Scheduler;
use crate::{
    AnswerWith, Completion, DecodedRequest, EventStream, ExecutionObserver, Identity, Observer,
    RequestDecoder, Sandboxes, SchedulerError, SchedulerLimits, StoredReport, Submission, Ticket,
    block_in_place,
};

/// Longer than anything here takes; only a failure waits this long.
const TEST_TIMEOUT: Duration = Duration::from_secs(30);

/// A scheduler, its store and its sandbox.
struct Bench {
    scheduler: Scheduler,
    store: Arc<dyn Store>,
    sandbox: Arc<Sandbox>,
    // Removed when the test ends.
    _directory: TempDir,
}

/// Observes nothing.
struct Silent;

/// Reads requests of [`Bench`] back: a language and its code.
struct Decoder(Arc<Sandbox>);

impl Observer for Silent {
    fn observe(&self) -> Box<dyn ExecutionObserver> {
        Box::new(Self)
    }

    fn accepted(&self, _language: &str) {}

    fn abandoned(&self, _owner: Option<&str>, _report: &Report) {}
}

impl ExecutionObserver for Silent {
    fn event(&self, _event: &EventKind) {}

    fn finished(&self, _completion: &Completion<'_>) {}
}

impl RequestDecoder for Decoder {
    fn decode(
        &self,
        id: ExecutionId,
        _owner: Option<&str>,
        stored: Value,
    ) -> Result<DecodedRequest, String> {
        let text = |field: &str| stored[field].as_str().unwrap().to_owned();
        let request = request(&text("language"), &text("code")).id(id).build().unwrap();
        let requirements = self.0.requirements(&request).map_err(|error| with_causes(&error))?;
        Ok(DecodedRequest { sandbox: Arc::clone(&self.0), request, requirements })
    }
}

fn limits() -> SchedulerLimits {
    SchedulerLimits {
        concurrency: 2,
        memory_budget: ByteSize::mib(1024),
        share_per_key: 100,
        queue_bound: 100,
        queue_memory: ByteSize::mib(256),
        queue_memory_per_key: ByteSize::mib(64),
        quota_per_key: 50,
        limit_local: false,
    }
}

impl Bench {
    async fn new(limits: SchedulerLimits) -> Self {
        Self::with_queue(limits, LocalQueue::new(limits.queue_bound)).await
    }

    async fn with_queue(limits: SchedulerLimits, queue: impl Queue + 'static) -> Self {
        let directory = TempDir::new().unwrap();
        let store = SqliteStore::open(&directory.path().join("test.db")).await.unwrap();
        let store: Arc<dyn Store> = Arc::new(store);
        let native = [Isolation::Native];
        let sandboxes = Sandboxes::start(&native, &native, || {
            let builder = Sandbox::builder().spare_slots(1).blocking_with(block_in_place);
            builder.store_directory(directory.path().join("kept"))
        });
        let sandbox = Arc::clone(sandboxes.unwrap().preferred());
        let scheduler =
            Scheduler::start(limits, Arc::new(queue), Arc::clone(&store), Arc::new(Silent));
        Self { scheduler, store, sandbox, _directory: directory }
    }

    /// A scheduler that is started after this one on the same store.
    fn restart(&self, limits: SchedulerLimits) -> Scheduler {
        let queue = Arc::new(LocalQueue::new(limits.queue_bound));
        Scheduler::start(limits, queue, Arc::clone(&self.store), Arc::new(Silent))
    }

    fn decoder(&self) -> Arc<Decoder> {
        Arc::new(Decoder(Arc::clone(&self.sandbox)))
    }

    fn submission(&self, request: RequestBuilder) -> Submission {
        let request = request.build().unwrap();
        let stored_request =
            json!({ "language": request.language().to_string(), "code": request.code() });
        Submission {
            sandbox: Arc::clone(&self.sandbox),
            requirements: self.sandbox.requirements(&request).unwrap(),
            stored_request: stored_request.to_string(),
            labels: BTreeMap::new(),
            callback: None,
            idempotency: None,
            is_toolchain_seen: false,
            request,
        }
    }

    /// Submits a request of this client.
    async fn submit(
        &self,
        request: RequestBuilder,
        client: &Identity,
        idempotency: Option<Idempotency>,
    ) -> Result<Ticket, SchedulerError> {
        let submission = Submission { idempotency, ..self.submission(request) };
        self.scheduler.submit(submission, client.key.clone(), AnswerWith::Id).await
    }

    async fn accept(&self, code: &str) -> Ticket {
        self.submit(bash(code), &nobody(), None).await.unwrap()
    }

    async fn report(&self, id: &str) -> Value {
        json(&self.scheduler.wait(id, &nobody(), TEST_TIMEOUT).await.unwrap())
    }

    /// Waits until the program has printed this.
    async fn printed(&self, id: &str, text: &str) {
        let mut stream = self.scheduler.events(id, &nobody(), 0).await.unwrap();
        while let Some(event) = within(stream.next()).await {
            if event.unwrap().json.contains(text) {
                return;
            }
        }
        panic!("{text:?} was not printed");
    }
}

fn request(language: &str, code: &str) -> RequestBuilder {
    let limits = Limits::run().with_memory(ByteSize::mib(64)).unwrap();
    let limits = limits.with_wall_time(Duration::from_mins(1)).unwrap();
    Request::builder(language).code(code).limits(limits)
}

fn bash(code: &str) -> RequestBuilder {
    request("bash", code)
}

/// What a client reads.
fn json(report: &StoredReport) -> Value {
    serde_json::from_str(&report.json).unwrap()
}

/// The client on loopback.
fn nobody() -> Identity {
    Identity { key: None, scopes: vec![Scope::Execute], permissions: Permissions::new() }
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
