use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::BOUNDS;

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfAnswer {
    method: &'static str,
    route: String,
    status: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfRoute {
    route: String,
}

/// Requests over HTTP. Routes are told as templates, never as the paths that clients wrote.
#[derive(Debug)]
pub(super) struct Http {
    requests: Family<OfAnswer, Counter>,
    seconds: Family<OfRoute, Histogram, fn() -> Histogram>,
}

impl Http {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let requests = Family::default();
        registry.register("http_requests", "Requests answered", requests.clone());
        let seconds: Family<_, _, fn() -> _> =
            Family::new_with_constructor(|| Histogram::new(BOUNDS));
        let help = "Time from a request to the beginning of its answer";
        registry.register("http_request_seconds", help, seconds.clone());
        Self { requests, seconds }
    }

    pub(super) fn answered(&self, method: &'static str, route: &str, status: u16, took: Duration) {
        let status = match status {
            100..200 => "1xx",
            200..300 => "2xx",
            300..400 => "3xx",
            400..500 => "4xx",
            _ => "5xx",
        };
        let route = route.to_owned();
        self.requests.get_or_create(&OfAnswer { method, route: route.clone(), status }).inc();
        self.seconds.get_or_create(&OfRoute { route }).observe(took.as_secs_f64());
    }
}
