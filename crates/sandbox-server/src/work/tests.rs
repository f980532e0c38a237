use std::sync::Arc;

use sandbox::{ByteSize, Sandbox};
use sandbox_api::{Code, ExecuteRequest, Problem};
use sandbox_scheduler::{AnswerWith, Identity, Sandboxes, Scheduler, block_in_place};
use sandbox_store::{LocalQueue, Permissions, Scope, SqliteStore, Store};
use tempfile::TempDir;

use super::Work;
use crate::config::{HostInfo, Layer, LoadedSettings};
use crate::metrics::Metrics;
use crate::observer::ServerObserver;

/// A server without HTTP.
struct Server {
    work: Work,
    store: Arc<dyn Store>,
    // Removed when the test ends.
    _directory: TempDir,
}

impl Server {
    async fn start() -> Self {
        let directory = TempDir::new().unwrap();
        let host = HostInfo {
            home: Some(directory.path().to_owned()),
            config_home: Some("/nonexistent".into()),
            cores: 2,
            available_memory: Some(4 << 30),
            ..HostInfo::default()
        };
        let settings = LoadedSettings::load(Layer::default(), None, &host).unwrap();
        let mut config = settings.config().unwrap();
        config.max_code = ByteSize::kib(64);
        config.memory_budget = ByteSize::mib(1024);
        let store = SqliteStore::open(&directory.path().join("test.db")).await.unwrap();
        let store: Arc<dyn Store> = Arc::new(store);
        let sandboxes = Sandboxes::start(&config.isolations, &config.isolation_order, || {
            let builder = Sandbox::builder().spare_slots(1).blocking_with(block_in_place);
            builder.store_directory(directory.path().join("kept"))
        });
        let metrics = Arc::new(Metrics::new());
        let observer = Arc::new(ServerObserver::new(Arc::clone(&metrics)));
        let queue = Arc::new(LocalQueue::new(config.queue_bound));
        let scheduler = Scheduler::start((&config).into(), queue, Arc::clone(&store), observer);
        let sandboxes = Arc::new(sandboxes.unwrap());
        let work = Work::new(Arc::new(scheduler), sandboxes, &config, metrics);
        Self { work, store, _directory: directory }
    }

    async fn refuse(&self, request: ExecuteRequest) -> Problem {
        let client =
            Identity { key: None, scopes: vec![Scope::Execute], permissions: Permissions::new() };
        self.work.accept(request, &client, None, AnswerWith::Id).await.unwrap_err()
    }
}

fn bash(code: &str) -> ExecuteRequest {
    ExecuteRequest { language: "bash".into(), code: Some(code.into()), ..ExecuteRequest::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_request_is_not_stored() {
    let server = Server::start().await;
    let request = |language: &str| ExecuteRequest { language: language.into(), ..bash("") };
    assert_eq!(server.refuse(request("pyhton")).await.code, Code::UnknownLanguage);
    assert_eq!(server.refuse(request("bash@99")).await.code, Code::LanguageUnavailable);
    assert_eq!(server.refuse(bash(&"#".repeat(70_000))).await.code, Code::CodeTooLarge);
    let hungry = ExecuteRequest { memory_limit_mb: Some(2048.0), ..bash("") };
    let problem = server.refuse(hungry).await;
    assert!(problem.detail.starts_with("memory_limit_mb: "), "{}", problem.detail);
    assert_eq!(server.store.unfinished().await.unwrap(), []);
}
