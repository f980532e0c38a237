use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use sandbox::PoolStats;

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
    pub(super) fn register(registry: &mut Registry) -> Self {
        let (wanted, ready, loaded) = (Gauge::default(), Gauge::default(), Gauge::default());
        let (hits, misses) = (Counter::default(), Counter::default());
        let help = "Target number of prepared sandboxes";
        registry.register("pool_wanted", help, wanted.clone());
        registry.register("pool_ready", "Prepared sandboxes", ready.clone());
        let help = "Prepared sandboxes that contain a compiled program";
        registry.register("pool_loaded", help, loaded.clone());
        let help = "Stages that used a prepared sandbox";
        registry.register("pool_hits", help, hits.clone());
        let help = "Stages for which no prepared sandbox was available";
        registry.register("pool_misses", help, misses.clone());
        let warm_ready = Family::<RuntimeLabel, Gauge>::default();
        let warm_hits = Family::<RuntimeLabel, Counter>::default();
        let warm_misses = Family::<RuntimeLabel, Counter>::default();
        let help = "Warm runtimes";
        registry.register("warm_ready", help, warm_ready.clone());
        let help = "Stages that used a warm runtime";
        registry.register("warm_hits", help, warm_hits.clone());
        let help = "Stages for which no warm runtime was available";
        registry.register("warm_misses", help, warm_misses.clone());
        Self { wanted, ready, loaded, hits, misses, warm_ready, warm_hits, warm_misses }
    }

    pub(super) fn set(&self, figures: &PoolStats) {
        let gauge = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        self.wanted.set(gauge(figures.wanted));
        self.ready.set(gauge(figures.ready));
        self.loaded.set(gauge(figures.loaded));
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
            self.warm_ready.get_or_create(&runtime).set(gauge(ready));
            // Removing a pool removes its counts, but a counter must not decrease.
            let raise = |counter: &Counter, to: u64| {
                counter.inner().fetch_max(to, Ordering::Relaxed);
            };
            raise(&self.warm_hits.get_or_create(&runtime), hits);
            raise(&self.warm_misses.get_or_create(&runtime), misses);
        }
    }
}
