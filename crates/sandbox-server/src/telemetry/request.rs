use axum::http::{HeaderMap, StatusCode};
use opentelemetry::propagation::{Extractor, TextMapPropagator as _};
use opentelemetry::trace::{
    Span as _, SpanBuilder, SpanKind, Status, TraceContextExt as _, Tracer as _,
};
use opentelemetry::{Context, KeyValue};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::Span;

use super::{Origin, Telemetry};

/// The span of a request; empty without a collector.
pub(crate) struct RequestSpan(Option<Span>);

/// Access to the W3C Trace Context headers.
struct Headers<'a>(&'a HeaderMap);

impl RequestSpan {
    /// Starts the span. It continues the client's trace, if the headers have one.
    pub(crate) fn begin(
        telemetry: &Telemetry,
        headers: &HeaderMap,
        method: &'static str,
        route: &str,
        id: &str,
    ) -> Self {
        let Some(tracer) = telemetry.tracer() else {
            return Self(None);
        };
        let client =
            TraceContextPropagator::new().extract_with_context(&Context::new(), &Headers(headers));
        let builder = SpanBuilder::from_name(format!("{method} {route}"))
            .with_kind(SpanKind::Server)
            .with_attributes([
                KeyValue::new("http.request.method", method),
                KeyValue::new("http.route", route.to_owned()),
                KeyValue::new("sandboxd.request.id", id.to_owned()),
            ]);
        Self(Some(tracer.build_with_context(builder, &client)))
    }

    /// The origin of work for this request, with the span as parent.
    pub(crate) fn origin(&self, telemetry: &Telemetry, id: &str) -> Origin {
        let parent = match &self.0 {
            Some(span) => Context::new().with_remote_span_context(span.span_context().clone()),
            None => Context::new(),
        };
        Origin::of_request(id, telemetry, parent)
    }

    /// Ends the span with a status. An aborted request drops the span, which ends it without one.
    pub(crate) fn end(self, status: StatusCode) {
        let Some(mut span) = self.0 else {
            return;
        };
        span.set_attribute(KeyValue::new("http.response.status_code", i64::from(status.as_u16())));
        // Client errors are not errors of the server.
        if status.is_server_error() {
            span.set_status(Status::error(""));
        }
        span.end();
    }
}

impl Extractor for Headers<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key)?.to_str().ok()
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(axum::http::HeaderName::as_str).collect()
    }
}
