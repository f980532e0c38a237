//! Traces: what a request and an execution went through, sent to a collector by OTLP.
//!
//! Spans are made here and nowhere else, each from a fixed list of attributes: what a client sent,
//! printed or keeps secret cannot slip into one. They do not follow the log, whose lines are for people.
//!
//! A request has its span from the beginning, since everything else hangs on it. The spans of an
//! execution are made after its end, all at once, from the moments at which its parts really began and
//! from the times in its report: an execution that is put back and run again later is told once, and
//! nothing is kept while it goes on but a few moments.
//!
//! Sending happens on a thread of its own, with a bounded queue; what does not fit is dropped. Without a
//! collector none of this exists, and a request pays for looking whether it does.

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

/// Spans that may wait to be sent: a few megabytes at most.
const MAX_WAITING: usize = 8192;
/// Spans that are sent at once.
const BATCH: usize = 512;
/// Fewer than that are sent this often.
const BETWEEN_BATCHES: Duration = Duration::from_secs(1);

/// Where spans go, if they go anywhere.
#[derive(Clone, Debug, Default)]
pub(crate) struct Telemetry {
    on: Option<On>,
}

#[derive(Clone, Debug)]
struct On {
    provider: SdkTracerProvider,
    tracer: SdkTracer,
}

impl Telemetry {
    /// Begins to send, if the configuration says where to.
    pub(crate) fn start(config: &Config) -> Result<Self> {
        let Some(endpoint) = &config.otlp_endpoint else {
            return Ok(Self::default());
        };
        let exporter = Exporter::new(endpoint).context("traces cannot be sent")?;
        let batches = BatchConfigBuilder::default()
            .with_max_queue_size(MAX_WAITING)
            .with_max_export_batch_size(BATCH)
            .with_scheduled_delay(BETWEEN_BATCHES)
            .build();
        let processor = BatchSpanProcessor::builder(exporter).with_batch_config(batches).build();
        // A client that is traced itself has decided already, for the whole trace.
        let share = Sampler::TraceIdRatioBased(config.otlp_sample);
        let version = KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
        let resource = Resource::builder().with_service_name("sandboxd").with_attribute(version);
        let provider = SdkTracerProvider::builder()
            .with_sampler(Sampler::ParentBased(Box::new(share)))
            .with_resource(resource.build())
            .with_span_processor(processor)
            .build();
        let tracer = provider.tracer("sandboxd");
        tracing::info!(endpoint, sample = config.otlp_sample, "traces are sent");
        Ok(Self { on: Some(On { provider, tracer }) })
    }

    /// Sends what still waits, for at most so long.
    pub(crate) async fn shut_down(&self, patience: Duration) {
        let Some(On { provider, .. }) = &self.on else {
            return;
        };
        let provider = provider.clone();
        // It waits for the thread that sends, which a task must not.
        let sent = tokio::task::spawn_blocking(move || provider.shutdown_with_timeout(patience));
        match tokio::time::timeout(patience, sent).await {
            Ok(Ok(Ok(()))) => {}
            Ok(Ok(Err(error))) => {
                tracing::warn!(error = error.to_string(), "the last traces were not sent");
            }
            Ok(Err(_)) | Err(_) => tracing::warn!("the last traces were not sent in time"),
        }
    }

    fn tracer(&self) -> Option<&SdkTracer> {
        self.on.as_ref().map(|on| &on.tracer)
    }
}
