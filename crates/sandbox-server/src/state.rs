use std::sync::Arc;

use sandbox_store::Store;

use crate::config::Config;
use crate::environments::ClientEnvironments;
use crate::keys::Keys;
use crate::metrics::Metrics;
use crate::sandboxes::Sandboxes;
use crate::telemetry::Telemetry;
use crate::work::Work;

/// What every handler shares. Cloned for each request, so all of it is behind counters.
#[derive(Clone)]
pub(crate) struct AppState {
    /// Executions, from acceptance to report.
    pub(crate) work: Arc<Work>,
    /// Packages of clients under names of their own.
    pub(crate) environments: Arc<ClientEnvironments>,
    /// What runs them.
    pub(crate) sandboxes: Arc<Sandboxes>,
    /// What is remembered.
    pub(crate) store: Arc<dyn Store>,
    /// Who may ask.
    pub(crate) keys: Arc<Keys>,
    /// How the server is set up.
    pub(crate) config: Arc<Config>,
    /// What is counted.
    pub(crate) metrics: Arc<Metrics>,
    /// What is traced.
    pub(crate) telemetry: Telemetry,
}
