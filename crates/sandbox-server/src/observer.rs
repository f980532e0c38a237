//! Observes the scheduler: executions are counted, logged and traced.

use std::sync::Arc;
use std::time::Duration;

use sandbox::{EventKind, Report, Timings};
use sandbox_scheduler::{Completion, ExecutionObserver, Observer};

use crate::metrics::Metrics;
use crate::telemetry::{Ended, Origin, StageStarts};

/// Observes all executions of a server.
pub(crate) struct ServerObserver {
    metrics: Arc<Metrics>,
}

/// Observes one execution.
struct Observed {
    metrics: Arc<Metrics>,
    /// The request that created it.
    origin: Origin,
    stages: StageStarts,
}

impl ServerObserver {
    pub(crate) fn new(metrics: Arc<Metrics>) -> Self {
        Self { metrics }
    }
}

impl Observer for ServerObserver {
    fn observe(&self) -> Box<dyn ExecutionObserver> {
        Box::new(Observed {
            metrics: Arc::clone(&self.metrics),
            origin: Origin::current(),
            stages: StageStarts::default(),
        })
    }

    fn accepted(&self, language: &str) {
        self.metrics.accepted(language);
    }

    fn abandoned(&self, owner: Option<&str>, report: &Report) {
        self.metrics.finished(report, owner, Duration::ZERO);
        tracing::warn!(
            execution = report.id.to_string(),
            key = owner,
            language = report.language,
            status = report.status.name(),
            error = report.error,
            "execution given up"
        );
    }
}

impl ExecutionObserver for Observed {
    fn event(&self, event: &EventKind) {
        self.stages.hear(event);
    }

    fn finished(&self, completion: &Completion<'_>) {
        let &Completion { report, owner, created_at, accepted, queued, .. } = completion;
        self.metrics.finished(report, owner, queued);
        self.log(completion);
        let accepted = (created_at.into(), accepted);
        let (key, waited, stages) = (owner, queued, &self.stages);
        Ended { report, key, accepted, waited, stages }.trace(&self.origin);
    }
}

impl Observed {
    /// Logs one line. The program and its output belong to the client and are not logged.
    fn log(&self, completion: &Completion<'_>) {
        let report = completion.report;
        let Timings { prepare, compile, run, collect, .. } = report.timings_ms;
        tracing::info!(
            execution = completion.id,
            request_id = self.origin.request(),
            key = completion.owner,
            language = report.language,
            status = report.status.name(),
            queue_ms = Timings::millis(completion.queued),
            prepare_ms = prepare,
            compile_ms = compile,
            run_ms = run,
            collect_ms = collect,
            "execution ended"
        );
    }
}
