use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use opentelemetry::trace::{Span as _, SpanBuilder, Status, TraceContextExt as _, Tracer as _};
use opentelemetry::{Context, KeyValue};
use opentelemetry_sdk::trace::SdkTracer;
use sandbox::{EventKind, Report, Stage};

use super::Origin;

/// When the stages of an execution began.
#[derive(Debug, Default)]
pub(crate) struct StageStarts(Mutex<Vec<(Stage, Instant)>>);

/// An execution that is over, as its spans tell it.
pub(crate) struct Ended<'a> {
    pub(crate) report: &'a Report,
    /// The id of the key it belongs to.
    pub(crate) key: Option<&'a str>,
    /// When it was accepted, on the clock that everybody reads and on the one that is never set.
    pub(crate) accepted: (SystemTime, Instant),
    /// How long it waited for its turn.
    pub(crate) waited: Duration,
    pub(crate) stages: &'a StageStarts,
}

/// What is told of one part.
struct Part {
    name: &'static str,
    begun: Instant,
    took: Duration,
    attributes: Vec<KeyValue>,
}

impl StageStarts {
    /// Remembers when a stage begins.
    pub(crate) fn hear(&self, event: &EventKind) {
        if let EventKind::Stage(stage) = event {
            let mut starts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            starts.push((*stage, Instant::now()));
        }
    }

    /// When a stage began, and when the next one did, if there was one.
    fn of(&self, stage: Stage) -> Option<(Instant, Option<Instant>)> {
        let starts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = starts.iter().position(|(begun, _)| *begun == stage)?;
        Some((starts[place].1, starts.get(place + 1).map(|(_, at)| *at)))
    }
}

impl Ended<'_> {
    /// Makes its spans, if somebody wants them.
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
            let below = Context::new().with_remote_span_context(span.span_context().clone());
            for part in self.parts(now) {
                self.tell(tracer, &below, part);
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

    /// Its parts in the order in which they happened. Each stage has its own preparation and collection.
    fn parts(&self, now: Instant) -> Vec<Part> {
        let queue =
            Part { name: "queue", begun: self.accepted.1, took: self.waited, attributes: vec![] };
        let mut parts = vec![queue];
        for stage in &self.report.stages {
            let Some((begun, next)) = self.stages.of(stage.name) else {
                continue;
            };
            let of_stage = || KeyValue::new("sandboxd.stage", stage.name.name());
            let after = stage.usage.wall_time + stage.collect_time;
            let prepare_time = before_start(begun, next.unwrap_or(now), stage.prepare_time, after);
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
            let part = |name, begun, took, attributes| Part { name, begun, took, attributes };
            parts.extend([
                part("prepare", begun, prepare_time, vec![of_stage()]),
                part(stage.name.name(), started, stage.usage.wall_time, attributes),
                part("collect", ended, stage.collect_time, vec![of_stage()]),
            ]);
        }
        parts
    }

    fn tell(&self, tracer: &SdkTracer, parent: &Context, part: Part) {
        let builder = SpanBuilder::from_name(part.name)
            .with_start_time(self.at(part.begun))
            .with_attributes(part.attributes);
        let mut span = tracer.build_with_context(builder, parent);
        span.end_with_timestamp(self.at(part.begun + part.took));
    }

    /// A moment on the clock that everybody reads, as if that had not been set since acceptance.
    fn at(&self, moment: Instant) -> SystemTime {
        self.accepted.0 + moment.saturating_duration_since(self.accepted.1)
    }
}

/// How long a stage was prepared. The supervisor hears of a program's start a moment after it, and the
/// program's own time is measured from the start itself; where the two together would reach beyond the
/// end of the stage, the preparation was over that much earlier.
fn before_start(begun: Instant, end: Instant, prepare: Duration, after: Duration) -> Duration {
    let most = end.saturating_duration_since(begun).saturating_sub(after);
    prepare.min(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_that_was_heard_of_late_makes_no_stage_longer() {
        let (begun, ms) = (Instant::now(), Duration::from_millis);
        assert_eq!(before_start(begun, begun + ms(10), ms(2), ms(8)), ms(2));
        assert_eq!(before_start(begun, begun + ms(10), ms(3), ms(8)), ms(2));
        assert_eq!(before_start(begun, begun + ms(10), ms(3), ms(11)), ms(0));
        assert_eq!(before_start(begun, begun + ms(90), ms(3), ms(8)), ms(3));
    }
}
