use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use sandbox_store::Swept;

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct KindLabel {
    kind: &'static str,
}

/// Metrics of the database.
#[derive(Debug)]
pub(super) struct StoreMetrics {
    bytes: Gauge,
    swept: Family<KindLabel, Counter>,
}

impl StoreMetrics {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let (bytes, swept) = (Gauge::default(), Family::default());
        registry.register("store_bytes", "Size of the database", bytes.clone());
        let help = "Records removed by retention";
        registry.register("swept", help, swept.clone());
        Self { bytes, swept }
    }

    pub(super) fn size(&self, bytes: u64) {
        self.bytes.set(i64::try_from(bytes).unwrap_or(i64::MAX));
    }

    pub(super) fn swept(&self, swept: Swept) {
        let counts = [
            ("execution", swept.executions),
            ("idempotency", swept.idempotency),
            ("audit", swept.audit),
        ];
        for (kind, count) in counts {
            self.swept.get_or_create(&KindLabel { kind }).inc_by(count);
        }
    }
}
