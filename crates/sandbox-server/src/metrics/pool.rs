use std::sync::atomic::Ordering;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use sandbox::PoolFigures;

/// Sandboxes prepared ahead. The library counts; here its figures are copied when somebody asks.
#[derive(Debug)]
pub(super) struct Pool {
    wanted: Gauge,
    ready: Gauge,
    hits: Counter,
    misses: Counter,
}

impl Pool {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let (wanted, ready) = (Gauge::default(), Gauge::default());
        let (hits, misses) = (Counter::default(), Counter::default());
        let help = "Sandboxes that the server tries to keep prepared";
        registry.register("pool_wanted", help, wanted.clone());
        registry.register("pool_ready", "Sandboxes prepared now", ready.clone());
        let help = "Stages that got a sandbox prepared ahead";
        registry.register("pool_hits", help, hits.clone());
        let help = "Stages that a sandbox had to be built for";
        registry.register("pool_misses", help, misses.clone());
        Self { wanted, ready, hits, misses }
    }

    pub(super) fn set(&self, figures: PoolFigures) {
        let gauge = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        self.wanted.set(gauge(figures.wanted));
        self.ready.set(gauge(figures.ready));
        self.hits.inner().store(figures.prepared_claims, Ordering::Relaxed);
        self.misses.inner().store(figures.built_claims, Ordering::Relaxed);
    }
}
