use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use sandbox_store::Swept;

use super::{gauge_value, metric};

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
    pub(super) fn register(to: &mut Registry) -> Self {
        Self {
            bytes: metric(to, "store_bytes", "Size of the database"),
            swept: metric(to, "swept", "Records removed by retention"),
        }
    }

    pub(super) fn size(&self, bytes: u64) {
        self.bytes.set(gauge_value(bytes));
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
