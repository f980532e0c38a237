use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

/// The outcome of an attempt to deliver a callback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallbackOutcome {
    /// The receiver accepted it.
    Delivered,
    /// The attempt failed; there will be another one.
    Failed,
    /// The last attempt failed.
    GivenUp,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OutcomeLabel {
    outcome: &'static str,
}

/// Attempts by outcome.
#[derive(Debug, Default)]
pub(super) struct Callbacks(Family<OutcomeLabel, Counter>);

impl Callbacks {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register(
            "callbacks",
            "Attempts to deliver a report to a callback URL",
            self.0.clone(),
        );
    }

    pub(super) fn count(&self, outcome: CallbackOutcome) {
        let outcome = match outcome {
            CallbackOutcome::Delivered => "delivered",
            CallbackOutcome::Failed => "failed",
            CallbackOutcome::GivenUp => "given_up",
        };
        self.0.get_or_create(&OutcomeLabel { outcome }).inc();
    }
}
