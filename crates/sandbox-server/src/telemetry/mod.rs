//! Traces: spans of requests and executions, sent to a collector by OTLP.
//!
//! Only this module creates spans, each with a fixed list of attributes, so that nothing private of a client gets into
//! one. Spans are independent of the log.
//!
//! The span of a request starts with the request, as the parent of all others. The spans of an execution are created
//! together after its end, from recorded start times and the durations in its report. So an execution that returns to
//! the queue and runs again has one span, and a running one costs only a few timestamps.
//!
//! A thread sends spans from a bounded queue; spans that do not fit are dropped. Without a collector, a request only
//! pays for the check that there is none.

mod execution;
mod export;
mod origin;
mod request;

use std::time::Duration;

use anyhow::{Context as _, Result};
use opentelemetry::KeyValue;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{
    BatchConfigBuilder, BatchSpanProcessor, Sampler, SdkTracer, SdkTracerProvider,
};

use crate::config::Config;
pub(crate) use execution::{Ended, StageStarts};
use export::Exporter;
pub(crate) use origin::Origin;
pub(crate) use request::RequestSpan;

/// Maximum number of queued spans: a few megabytes.
const MAX_QUEUED_SPANS: usize = 8192;
/// Maximum number of spans in one export.
const MAX_BATCH_SIZE: usize = 512;
/// Interval of exports.
const EXPORT_INTERVAL: Duration = Duration::from_secs(1);

/// The trace pipeline, if a collector is configured.
#[derive(Clone, Debug, Default)]
pub(crate) struct Telemetry {
    pipeline: Option<Pipeline>,
}

#[derive(Clone, Debug)]
struct Pipeline {
    provider: SdkTracerProvider,
    tracer: SdkTracer,
}

impl Telemetry {
    /// Starts the pipeline, if the configuration names a collector.
    pub(crate) fn start(config: &Config) -> Result<Self> {
        let Some(endpoint) = &config.otlp_endpoint else {
            return Ok(Self::default());
        };
        let exporter = Exporter::new(endpoint).context("failed to set up traces")?;
        let batches = BatchConfigBuilder::default()
            .with_max_queue_size(MAX_QUEUED_SPANS)
            .with_max_export_batch_size(MAX_BATCH_SIZE)
            .with_scheduled_delay(EXPORT_INTERVAL)
            .build();
        let processor = BatchSpanProcessor::builder(exporter).with_batch_config(batches).build();
        // A client that sends a trace context has decided for the whole trace.
        let ratio = Sampler::TraceIdRatioBased(config.otlp_sample);
        let version = KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
        let resource = Resource::builder().with_service_name("sandboxd").with_attribute(version);
        let provider = SdkTracerProvider::builder()
            .with_sampler(Sampler::ParentBased(Box::new(ratio)))
            .with_resource(resource.build())
            .with_span_processor(processor)
            .build();
        let tracer = provider.tracer("sandboxd");
        tracing::info!(endpoint, sample = config.otlp_sample, "sending traces");
        Ok(Self { pipeline: Some(Pipeline { provider, tracer }) })
    }

    /// Sends the queued spans, within `timeout`.
    pub(crate) async fn shut_down(&self, timeout: Duration) {
        let Some(Pipeline { provider, .. }) = &self.pipeline else {
            return;
        };
        let provider = provider.clone();
        // Blocks until the exporter's thread has sent them.
        let sent = tokio::task::spawn_blocking(move || provider.shutdown_with_timeout(timeout));
        match tokio::time::timeout(timeout, sent).await {
            Ok(Ok(Ok(()))) => {}
            Ok(Ok(Err(error))) => {
                tracing::warn!(error = error.to_string(), "failed to send the last traces");
            }
            Ok(Err(_)) | Err(_) => tracing::warn!("timeout while sending the last traces"),
        }
    }

    fn tracer(&self) -> Option<&SdkTracer> {
        self.pipeline.as_ref().map(|pipeline| &pipeline.tracer)
    }
}
