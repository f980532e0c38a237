use std::sync::Arc;

use sandbox_scheduler::{Sandboxes, SchedulerLimits};
use sandbox_store::Store;

use crate::config::Config;
use crate::environments::ClientEnvironments;
use crate::keys::Keys;
use crate::metrics::Metrics;
use crate::telemetry::Telemetry;
use crate::work::Work;

/// What all handlers share. It is cloned for each request, so every field is reference-counted.
#[derive(Clone)]
pub(crate) struct AppState {
    /// Executions, as clients use them.
    pub(crate) work: Arc<Work>,
    /// Named package environments of clients.
    pub(crate) environments: Arc<ClientEnvironments>,
    /// The sandboxes that run them.
    pub(crate) sandboxes: Arc<Sandboxes>,
    /// The persistent state.
    pub(crate) store: Arc<dyn Store>,
    /// The API keys.
    pub(crate) keys: Arc<Keys>,
    /// The settings.
    pub(crate) config: Arc<Config>,
    /// The metrics.
    pub(crate) metrics: Arc<Metrics>,
    /// The traces.
    pub(crate) telemetry: Telemetry,
}

impl From<&Config> for SchedulerLimits {
    fn from(config: &Config) -> Self {
        Self {
            concurrency: config.concurrency,
            memory_budget: config.memory_budget,
            share_per_key: config.share_per_key,
            queue_bound: config.queue_bound,
            queue_memory: config.queue_memory,
            queue_memory_per_key: config.queue_memory_per_key,
            quota_per_key: config.quota_per_key,
            limit_local: config.limit_local,
        }
    }
}
