use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use sandbox::PoolStats;

use super::{gauge_value, metric};

/// Metrics of the sandbox pool, copied from the library's counters at each scrape.
#[derive(Debug)]
pub(super) struct Pool {
    wanted: Gauge,
    ready: Gauge,
    loaded: Gauge,
    hits: Counter,
    misses: Counter,
    warm_ready: Family<RuntimeLabel, Gauge>,
    warm_hits: Family<RuntimeLabel, Counter>,
    warm_misses: Family<RuntimeLabel, Counter>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RuntimeLabel {
    runtime: String,
}

impl Pool {
    pub(super) fn register(to: &mut Registry) -> Self {
        Self {
            wanted: metric(to, "pool_wanted", "Target number of prepared sandboxes"),
            ready: metric(to, "pool_ready", "Prepared sandboxes"),
            loaded: metric(to, "pool_loaded", "Prepared sandboxes that contain a compiled program"),
            hits: metric(to, "pool_hits", "Stages that used a prepared sandbox"),
            misses: metric(to, "pool_misses", "Stages for which no prepared sandbox was available"),
            warm_ready: metric(to, "warm_ready", "Warm runtimes"),
            warm_hits: metric(to, "warm_hits", "Stages that used a warm runtime"),
            warm_misses: metric(
                to,
                "warm_misses",
                "Stages for which no warm runtime was available",
            ),
        }
    }

    pub(super) fn set(&self, figures: &PoolStats) {
        self.wanted.set(gauge_value(figures.wanted));
        self.ready.set(gauge_value(figures.ready));
        self.loaded.set(gauge_value(figures.loaded));
        self.hits.inner().store(figures.prepared_claims, Ordering::Relaxed);
        self.misses.inner().store(figures.built_claims, Ordering::Relaxed);
        // A language can have several pools, for different limits.
        let mut sums: BTreeMap<&str, (usize, u64, u64)> = BTreeMap::new();
        for warm in &figures.warm {
            let sum = sums.entry(&warm.name).or_default();
            *sum = (sum.0 + warm.ready, sum.1 + warm.hits, sum.2 + warm.misses);
        }
        for (name, (ready, hits, misses)) in sums {
            let runtime = RuntimeLabel { runtime: name.to_owned() };
            self.warm_ready.get_or_create(&runtime).set(gauge_value(ready));
            // Removing a pool removes its counts, but a counter must not decrease.
            let raise = |counter: &Counter, to: u64| {
                counter.inner().fetch_max(to, Ordering::Relaxed);
            };
            raise(&self.warm_hits.get_or_create(&runtime), hits);
            raise(&self.warm_misses.get_or_create(&runtime), misses);
        }
    }
}
