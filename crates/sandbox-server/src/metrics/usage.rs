use std::collections::HashSet;
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, PoisonError};

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use sandbox::Report;

use super::{gauge_value, metric};

/// The label of clients without a key. It is no id of a key: ids are longer.
const NO_KEY: &str = "none";

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct KeyLabel {
    key: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct CacheLabel {
    cache: &'static str,
}

/// Metrics of each key. The series of a revoked key are removed, so that their number is bounded by the valid keys.
#[derive(Debug)]
pub(super) struct Usage {
    /// A separate registry, which only the operator can read.
    pub(super) registry: Registry,
    executions: Family<KeyLabel, Counter>,
    cpu_seconds: Family<KeyLabel, Counter<f64, AtomicU64>>,
    wall_seconds: Family<KeyLabel, Counter<f64, AtomicU64>>,
    /// Sizes of the caches of all keys. For the operator only: they would reveal the activity of other keys.
    cache_bytes: Family<CacheLabel, Gauge>,
    /// The keys that have series.
    keys: Mutex<HashSet<String>>,
}

impl Usage {
    pub(super) fn new() -> Self {
        let mut all = Registry::with_prefix("sandboxd");
        let to = &mut all;
        Self {
            executions: metric(to, "key_executions", "Executions finished, by key"),
            cpu_seconds: metric(to, "key_cpu_seconds", "CPU time of all stages, by key"),
            wall_seconds: metric(to, "key_wall_seconds", "Wall-clock time of all stages, by key"),
            cache_bytes: metric(to, "cache_bytes", "Size of the cache on disk"),
            keys: Mutex::default(),
            registry: all,
        }
    }

    pub(super) fn add(&self, key: Option<&str>, report: &Report) {
        let label = KeyLabel { key: key.unwrap_or(NO_KEY).to_owned() };
        if let Some(key) = key {
            let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
            keys.insert(key.to_owned());
        }
        self.executions.get_or_create(&label).inc();
        let figures = || report.stages.iter().map(|stage| &stage.usage);
        let cpu = figures().map(|figures| figures.cpu_time().as_secs_f64()).sum::<f64>();
        let wall = figures().map(|figures| figures.wall_time.as_secs_f64()).sum::<f64>();
        self.cpu_seconds.get_or_create(&label).inc_by(cpu);
        self.wall_seconds.get_or_create(&label).inc_by(wall);
    }

    pub(super) fn cached(&self, cache: &'static str, bytes: u64) {
        self.cache_bytes.get_or_create(&CacheLabel { cache }).set(gauge_value(bytes));
    }

    /// Removes the series of keys that are not valid.
    pub(super) fn keep(&self, is_valid: impl Fn(&str) -> bool) {
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        keys.retain(|key| {
            let keep = is_valid(key);
            if !keep {
                let label = KeyLabel { key: key.clone() };
                self.executions.remove(&label);
                self.cpu_seconds.remove(&label);
                self.wall_seconds.remove(&label);
            }
            keep
        });
    }
}
