//! The span exporter, which logs failures at a limited rate.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use opentelemetry_otlp::{
    ExporterBuildError, Protocol, SpanExporter as Otlp, WithExportConfig as _,
};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SpanData, SpanExporter};

/// Spans of a slower export are lost. Short, so that it does not delay the shutdown.
const EXPORT_TIMEOUT: Duration = Duration::from_secs(3);
/// Minimum time between log lines about failures, which come with every batch.
const LOG_INTERVAL: Duration = Duration::from_mins(1);

/// Sends spans to the collector, and logs how many are lost.
#[derive(Debug)]
pub(super) struct Exporter {
    otlp: Otlp,
    lost: Mutex<Lost>,
}

#[derive(Debug, Default)]
struct Lost {
    /// Lost spans since the last log line.
    spans: usize,
    last_logged: Option<Instant>,
    is_failing: bool,
}

impl Exporter {
    pub(super) fn new(endpoint: &str) -> Result<Self, ExporterBuildError> {
        // The HTTP client uses the process-wide crypto provider. Another component may have installed the same one
        // already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let otlp = Otlp::builder()
            .with_http()
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(endpoint)
            .with_timeout(EXPORT_TIMEOUT)
            .build()?;
        Ok(Self { otlp, lost: Mutex::default() })
    }

    fn record(&self, spans: usize, result: &OTelSdkResult) {
        let mut lost = self.lost.lock().unwrap_or_else(PoisonError::into_inner);
        match result {
            Ok(()) if lost.is_failing => {
                tracing::info!(lost = lost.spans, "sending traces works again");
                *lost = Lost::default();
            }
            Ok(()) => {}
            Err(error) => {
                lost.is_failing = true;
                lost.spans += spans;
                if lost.last_logged.is_none_or(|logged| logged.elapsed() >= LOG_INTERVAL) {
                    let error = error.to_string();
                    tracing::warn!(error, lost = lost.spans, "failed to send traces");
                    lost.spans = 0;
                    lost.last_logged = Some(Instant::now());
                }
            }
        }
    }
}

impl SpanExporter for Exporter {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let spans = batch.len();
        let result = self.otlp.export(batch).await;
        self.record(spans, &result);
        result
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.otlp.shutdown_with_timeout(timeout)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.otlp.force_flush()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.otlp.set_resource(resource);
    }
}
