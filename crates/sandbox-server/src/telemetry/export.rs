//! Sending spans, and saying now and then that it fails.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use opentelemetry_otlp::{
    ExporterBuildError, Protocol, SpanExporter as Otlp, WithExportConfig as _,
};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SpanData, SpanExporter};

/// A collector that takes longer has to do without these spans. Short enough for a stop to end in time.
const EXPORT_TIMEOUT: Duration = Duration::from_secs(3);
/// Failures are told this often. They come with every batch, and one line says it all.
const BETWEEN_COMPLAINTS: Duration = Duration::from_mins(1);

/// Sends spans to the collector, and tells the log of what was lost.
#[derive(Debug)]
pub(super) struct Exporter {
    otlp: Otlp,
    lost: Mutex<Lost>,
}

#[derive(Debug, Default)]
struct Lost {
    /// Spans, since they were last told of.
    spans: usize,
    told: Option<Instant>,
    is_failing: bool,
}

impl Exporter {
    pub(super) fn new(endpoint: &str) -> Result<Self, ExporterBuildError> {
        // The client is built with whatever provider of cryptography the process has; whoever else
        // needs one may have installed it already, and it is the same.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let otlp = Otlp::builder()
            .with_http()
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(endpoint)
            .with_timeout(EXPORT_TIMEOUT)
            .build()?;
        Ok(Self { otlp, lost: Mutex::default() })
    }

    fn note(&self, spans: usize, result: &OTelSdkResult) {
        let mut lost = self.lost.lock().unwrap_or_else(PoisonError::into_inner);
        match result {
            Ok(()) if lost.is_failing => {
                tracing::info!(lost = lost.spans, "traces are sent again");
                *lost = Lost::default();
            }
            Ok(()) => {}
            Err(error) => {
                lost.is_failing = true;
                lost.spans += spans;
                if lost.told.is_none_or(|told| told.elapsed() >= BETWEEN_COMPLAINTS) {
                    let error = error.to_string();
                    tracing::warn!(error, lost = lost.spans, "traces cannot be sent");
                    lost.spans = 0;
                    lost.told = Some(Instant::now());
                }
            }
        }
    }
}

impl SpanExporter for Exporter {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let spans = batch.len();
        let result = self.otlp.export(batch).await;
        self.note(spans, &result);
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
