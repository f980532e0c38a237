use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

/// What came of a try to send a callback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallbackOutcome {
    /// The receiver has it.
    Delivered,
    /// It is tried again.
    Failed,
    /// It is not tried again.
    GivenUp,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfOutcome {
    outcome: &'static str,
}

/// Tries, by what came of them.
#[derive(Debug, Default)]
pub(super) struct Callbacks(Family<OfOutcome, Counter>);

impl Callbacks {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register("callbacks", "Tries to send a report to its client", self.0.clone());
    }

    pub(super) fn count(&self, outcome: CallbackOutcome) {
        let outcome = match outcome {
            CallbackOutcome::Delivered => "delivered",
            CallbackOutcome::Failed => "failed",
            CallbackOutcome::GivenUp => "given_up",
        };
        self.0.get_or_create(&OfOutcome { outcome }).inc();
    }
}
