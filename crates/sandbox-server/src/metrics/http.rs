use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::{durations, metric};

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct RequestLabels {
    method: &'static str,
    route: String,
    status: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct RouteLabel {
    route: String,
}

/// Metrics of HTTP requests, by path template.
#[derive(Debug)]
pub(super) struct Http {
    requests: Family<RequestLabels, Counter>,
    seconds: Family<RouteLabel, Histogram, fn() -> Histogram>,
}

impl Http {
    pub(super) fn register(to: &mut Registry) -> Self {
        let help = "Time from a request to the start of its response";
        Self {
            requests: metric(to, "http_requests", "HTTP requests"),
            seconds: durations(to, "http_request_seconds", help),
        }
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
        self.requests.get_or_create(&RequestLabels { method, route: route.clone(), status }).inc();
        self.seconds.get_or_create(&RouteLabel { route }).observe(took.as_secs_f64());
    }
}
