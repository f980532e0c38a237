use std::collections::HashSet;
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, PoisonError};

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use sandbox::Report;

/// The label of clients without a key. No key has this id: ids are longer.
const NOBODY: &str = "none";

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfKey {
    key: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfCache {
    cache: &'static str,
}

/// What each key used. A key that was taken back loses its series, so that there are never more of them
/// than valid keys.
#[derive(Debug)]
pub(super) struct Usage {
    /// Apart from everything else, since not everybody may read it.
    pub(super) registry: Registry,
    executions: Family<OfKey, Counter>,
    cpu_seconds: Family<OfKey, Counter<f64, AtomicU64>>,
    wall_seconds: Family<OfKey, Counter<f64, AtomicU64>>,
    /// What is kept for all keys together. A key that read it could watch what others compile.
    cache_bytes: Family<OfCache, Gauge>,
    /// The keys that have series.
    told: Mutex<HashSet<String>>,
}

impl Usage {
    pub(super) fn new() -> Self {
        let mut registry = Registry::with_prefix("sandboxd");
        let (executions, cpu_seconds, wall_seconds) =
            (Family::default(), Family::default(), Family::default());
        registry.register("key_executions", "Executions finished, by key", executions.clone());
        let help = "CPU time of all stages, by key";
        registry.register("key_cpu_seconds", help, cpu_seconds.clone());
        let help = "Time on the clock of all stages, by key";
        registry.register("key_wall_seconds", help, wall_seconds.clone());
        let cache_bytes = Family::default();
        registry.register("cache_bytes", "Bytes kept on the disk", cache_bytes.clone());
        let told = Mutex::default();
        Self { registry, executions, cpu_seconds, wall_seconds, cache_bytes, told }
    }

    pub(super) fn add(&self, key: Option<&str>, report: &Report) {
        let of_key = OfKey { key: key.unwrap_or(NOBODY).to_owned() };
        if let Some(key) = key {
            let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
            told.insert(key.to_owned());
        }
        self.executions.get_or_create(&of_key).inc();
        let figures = || report.stages.iter().map(|stage| &stage.usage);
        let cpu = figures().map(|figures| figures.cpu_time().as_secs_f64()).sum::<f64>();
        let wall = figures().map(|figures| figures.wall_time.as_secs_f64()).sum::<f64>();
        self.cpu_seconds.get_or_create(&of_key).inc_by(cpu);
        self.wall_seconds.get_or_create(&of_key).inc_by(wall);
    }

    pub(super) fn cached(&self, cache: &'static str, bytes: u64) {
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        self.cache_bytes.get_or_create(&OfCache { cache }).set(bytes);
    }

    /// Forgets all keys but those that are valid.
    pub(super) fn keep(&self, is_valid: impl Fn(&str) -> bool) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        told.retain(|key| {
            let stays = is_valid(key);
            if !stays {
                let of_key = OfKey { key: key.clone() };
                self.executions.remove(&of_key);
                self.cpu_seconds.remove(&of_key);
                self.wall_seconds.remove(&of_key);
            }
            stays
        });
    }
}
