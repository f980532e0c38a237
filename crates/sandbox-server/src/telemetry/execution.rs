use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use opentelemetry::trace::{Span as _, SpanBuilder, Status, TraceContextExt as _, Tracer as _};
use opentelemetry::{Context, KeyValue};
use opentelemetry_sdk::trace::SdkTracer;
use sandbox::{EventKind, Report, Stage};

use super::Origin;

/// The start times of an execution's stages.
#[derive(Debug, Default)]
pub(crate) struct StageStarts(Mutex<Vec<(Stage, Instant)>>);

/// A finished execution, the source of its spans.
pub(crate) struct Ended<'a> {
    pub(crate) report: &'a Report,
    /// The id of the owner's key.
    pub(crate) key: Option<&'a str>,
    /// When it was accepted, by the system clock and by the monotonic clock.
    pub(crate) accepted: (SystemTime, Instant),
    /// How long it was queued.
    pub(crate) waited: Duration,
    pub(crate) stages: &'a StageStarts,
}

/// A child span.
struct ChildSpan {
    name: &'static str,
    begun: Instant,
    took: Duration,
    attributes: Vec<KeyValue>,
}

impl StageStarts {
    /// Records the start of a stage.
    pub(crate) fn hear(&self, event: &EventKind) {
        if let EventKind::Stage(stage) = event {
            let mut starts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            starts.push((*stage, Instant::now()));
        }
    }

    /// The start of a stage, and of the next one, if there is one.
    fn of(&self, stage: Stage) -> Option<(Instant, Option<Instant>)> {
        let starts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let index = starts.iter().position(|(begun, _)| *begun == stage)?;
        Some((starts[index].1, starts.get(index + 1).map(|(_, at)| *at)))
    }
}

impl Ended<'_> {
    /// Creates the spans, if traces are on.
    pub(crate) fn trace(&self, origin: &Origin) {
        let Some(tracer) = origin.telemetry().tracer() else {
            return;
        };
        let builder = SpanBuilder::from_name("execution")
            .with_start_time(self.accepted.0)
            .with_attributes(self.attributes(origin));
        let mut span = tracer.build_with_context(builder, origin.parent());
        let now = Instant::now();
        if span.is_recording() {
            let parent = Context::new().with_remote_span_context(span.span_context().clone());
            for part in self.parts(now) {
                self.record(tracer, &parent, part);
            }
        }
        if self.report.status == sandbox::Status::Error {
            span.set_status(Status::error(""));
        }
        span.end_with_timestamp(self.at(now));
    }

    fn attributes(&self, origin: &Origin) -> Vec<KeyValue> {
        let Report { id, language, version, isolation, status, .. } = self.report;
        let mut attributes = vec![
            KeyValue::new("sandboxd.execution.id", id.to_string()),
            KeyValue::new("sandboxd.language", language.clone()),
            KeyValue::new("sandboxd.language.version", version.clone()),
            KeyValue::new("sandboxd.isolation", isolation.to_string()),
            KeyValue::new("sandboxd.status", status.name()),
        ];
        attributes.extend(self.key.map(|key| KeyValue::new("sandboxd.key.id", key.to_owned())));
        let request = origin.request().map(ToOwned::to_owned);
        attributes.extend(request.map(|id| KeyValue::new("sandboxd.request.id", id)));
        attributes
    }

    /// The child spans in chronological order. Each stage has its own preparation and collection.
    fn parts(&self, now: Instant) -> Vec<ChildSpan> {
        let queue = ChildSpan {
            name: "queue",
            begun: self.accepted.1,
            took: self.waited,
            attributes: vec![],
        };
        let mut parts = vec![queue];
        for stage in &self.report.stages {
            let Some((begun, next)) = self.stages.of(stage.name) else {
                continue;
            };
            let of_stage = || KeyValue::new("sandboxd.stage", stage.name.name());
            let after = stage.usage.wall_time + stage.collect_time;
            let prepare_time =
                prepare_duration(begun, next.unwrap_or(now), stage.prepare_time, after);
            let started = begun + prepare_time;
            let ended = started + stage.usage.wall_time;
            let mut attributes = vec![
                of_stage(),
                KeyValue::new("sandboxd.status", stage.status.name()),
                KeyValue::new("sandboxd.exit_code", i64::from(stage.exit_code)),
            ];
            if stage.name == Stage::Compile {
                attributes.push(KeyValue::new("sandboxd.cached", stage.cached));
            }
            let part = |name, begun, took, attributes| ChildSpan { name, begun, took, attributes };
            parts.extend([
                part("prepare", begun, prepare_time, vec![of_stage()]),
                part(stage.name.name(), started, stage.usage.wall_time, attributes),
                part("collect", ended, stage.collect_time, vec![of_stage()]),
            ]);
        }
        parts
    }

    fn record(&self, tracer: &SdkTracer, parent: &Context, part: ChildSpan) {
        let builder = SpanBuilder::from_name(part.name)
            .with_start_time(self.at(part.begun))
            .with_attributes(part.attributes);
        let mut span = tracer.build_with_context(builder, parent);
        span.end_with_timestamp(self.at(part.begun + part.took));
    }

    /// A time of the system clock, computed from the monotonic clock since acceptance.
    fn at(&self, moment: Instant) -> SystemTime {
        self.accepted.0 + moment.saturating_duration_since(self.accepted.1)
    }
}

/// The duration of a stage's preparation. The supervisor learns of the program's start with a delay, so the measured
/// preparation can overlap the wall-clock time of the program. It is shortened to fit into the stage.
fn prepare_duration(begun: Instant, end: Instant, prepare: Duration, after: Duration) -> Duration {
    let max = end.saturating_duration_since(begun).saturating_sub(after);
    prepare.min(max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_notice_of_the_start_does_not_extend_the_stage() {
        let (begun, ms) = (Instant::now(), Duration::from_millis);
        assert_eq!(prepare_duration(begun, begun + ms(10), ms(2), ms(8)), ms(2));
        assert_eq!(prepare_duration(begun, begun + ms(10), ms(3), ms(8)), ms(2));
        assert_eq!(prepare_duration(begun, begun + ms(10), ms(3), ms(11)), ms(0));
        assert_eq!(prepare_duration(begun, begun + ms(90), ms(3), ms(8)), ms(3));
    }
}
