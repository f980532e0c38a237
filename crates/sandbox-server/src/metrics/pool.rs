use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use sandbox::PoolStats;

/// Sandboxes prepared ahead. The library counts; here its figures are copied when somebody asks.
#[derive(Debug)]
pub(super) struct Pool {
    wanted: Gauge,
    ready: Gauge,
    loaded: Gauge,
    hits: Counter,
    misses: Counter,
    warm_ready: Family<Runtime, Gauge>,
    warm_hits: Family<Runtime, Counter>,
    warm_misses: Family<Runtime, Counter>,
}

/// Whose runtime waits.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Runtime {
    runtime: String,
}

impl Pool {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let (wanted, ready, loaded) = (Gauge::default(), Gauge::default(), Gauge::default());
        let (hits, misses) = (Counter::default(), Counter::default());
        let help = "Sandboxes that the server tries to keep prepared";
        registry.register("pool_wanted", help, wanted.clone());
        registry.register("pool_ready", "Sandboxes prepared now", ready.clone());
        let help = "Sandboxes prepared now with a compiled program in them";
        registry.register("pool_loaded", help, loaded.clone());
        let help = "Stages that got a sandbox prepared ahead";
        registry.register("pool_hits", help, hits.clone());
        let help = "Stages that a sandbox had to be built for";
        registry.register("pool_misses", help, misses.clone());
        let warm_ready = Family::<Runtime, Gauge>::default();
        let warm_hits = Family::<Runtime, Counter>::default();
        let warm_misses = Family::<Runtime, Counter>::default();
        let help = "Runtimes that wait for a program";
        registry.register("warm_ready", help, warm_ready.clone());
        let help = "Stages whose runtime waited for them";
        registry.register("warm_hits", help, warm_hits.clone());
        let help = "Stages whose runtime could have waited and did not";
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
        // Of one language there may be several, for different limits.
        let mut sums: BTreeMap<&str, (usize, u64, u64)> = BTreeMap::new();
        for warm in &figures.warm {
            let sum = sums.entry(&warm.name).or_default();
            *sum = (sum.0 + warm.ready, sum.1 + warm.hits, sum.2 + warm.misses);
        }
        for (name, (ready, hits, misses)) in sums {
            let runtime = Runtime { runtime: name.to_owned() };
            self.warm_ready.get_or_create(&runtime).set(gauge(ready));
            // A shape that was let go takes its count along; a counter must not go back.
            let raise = |counter: &Counter, to: u64| {
                counter.inner().fetch_max(to, Ordering::Relaxed);
            };
            raise(&self.warm_hits.get_or_create(&runtime), hits);
            raise(&self.warm_misses.get_or_create(&runtime), misses);
        }
    }
}
