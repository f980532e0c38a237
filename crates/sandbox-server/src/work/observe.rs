//! What is told of an execution that is over: it is counted, logged and traced.

use std::time::Duration;

use sandbox::{Report, Timings};

use super::live::Live;
use super::shared::Shared;
use crate::telemetry::Ended;

/// It ended with this report.
pub(super) fn ended(shared: &Shared, live: &Live, report: &Report) {
    let waited = Duration::from_secs_f64(report.timings_ms.queue / 1e3);
    let key = live.owner.as_deref();
    shared.metrics.finished(report, key, waited);
    log(live, report, waited);
    let accepted = (live.created_at.into(), live.accepted);
    Ended { report, key, accepted, waited, stages: &live.stages }.trace(&live.origin);
}

/// One line. What was run and what it printed is its owner's, and stands in no log.
fn log(live: &Live, report: &Report, waited: Duration) {
    let Timings { prepare, compile, run, collect, .. } = report.timings_ms;
    tracing::info!(
        execution = live.id,
        request_id = live.origin.request(),
        key = live.owner,
        language = report.language,
        status = report.status.name(),
        queue_ms = Timings::millis(waited),
        prepare_ms = prepare,
        compile_ms = compile,
        run_ms = run,
        collect_ms = collect,
        "execution ended"
    );
}

/// An earlier server accepted it, and it was ended at the start of this one.
pub(super) fn given_up(shared: &Shared, owner: Option<&str>, report: &Report) {
    shared.metrics.finished(report, owner, Duration::ZERO);
    tracing::warn!(
        execution = report.id.to_string(),
        key = owner,
        language = report.language,
        status = report.status.name(),
        error = report.error,
        "execution given up"
    );
}
