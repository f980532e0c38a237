//! Reports of executions that have none of the library's: those that are not over, and those that
//! ended without being carried out.

use std::time::Duration;

use chrono::{DateTime, SecondsFormat, Utc};
use sandbox::{ExecutionId, Isolation, Report, Stage, Status, Timings};
use sandbox_store::{ExecutionRecord, StoredEvent};
use serde_json::{Value, json};

use super::events::Journal;
use super::live::{Live, Outcome};

/// The report so far of an execution that is not over, or the whole.
pub(super) fn of_live(live: &Live) -> Value {
    if let Some(Outcome::Reported(report)) = live.outcome() {
        return Value::clone(&report);
    }
    let (status, started_at) = live.progress();
    unfinished(&live.id, status, &live.needs.language, live.created_at, started_at)
}

/// The same of one that is remembered.
pub(super) fn of_record(record: ExecutionRecord) -> Value {
    let ExecutionRecord { id, status, language, created_at, started_at, report, .. } = record;
    report.unwrap_or_else(|| unfinished(&id, status, &language, created_at, started_at))
}

fn unfinished(
    id: &str,
    status: Status,
    language: &str,
    created_at: DateTime<Utc>,
    started_at: Option<DateTime<Utc>>,
) -> Value {
    json!({
        "id": id,
        "status": status,
        "success": null,
        "language": language,
        "exit_code": null,
        "created_at": to_second(created_at),
        "started_at": started_at.map(to_second),
    })
}

/// The library's report, as of an execution that waited for its turn.
pub(super) fn after_waiting(report: &Report, live: &Live, waited: Duration) -> Value {
    let mut value = to_value(report);
    // Microseconds are as exact as this is.
    value["timings_ms"]["queue"] = ((waited.as_secs_f64() * 1e6).round() / 1e3).into();
    value["created_at"] = to_second(live.created_at).into();
    value
}

/// The report of an execution that no sandbox was built for.
pub(super) fn not_carried_out(
    id: ExecutionId,
    language: &str,
    version: &str,
    created_at: DateTime<Utc>,
    status: Status,
    reason: &str,
) -> Report {
    Report {
        id,
        status,
        stage: Stage::Run,
        success: false,
        language: language.to_owned(),
        version: version.to_owned(),
        isolation: Isolation::Native,
        stdout: String::new(),
        stderr: String::new(),
        output: String::new(),
        stdout_base64: None,
        stderr_base64: None,
        stdout_truncated: false,
        stderr_truncated: false,
        error: Some(reason.to_owned()),
        exit_code: -1,
        signal: None,
        execution_time_ms: 0.0,
        cpu_time_ms: 0.0,
        memory_used_kb: 0,
        memory_used_mb: 0,
        stages: Vec::new(),
        output_files: Vec::new(),
        skipped_files: Vec::new(),
        workspace: None,
        enforced: Vec::new(),
        missing: Vec::new(),
        violations: Vec::new(),
        timings_ms: Timings::default(),
        created_at,
    }
}

/// The events of an execution that an earlier run of the server began and this one cannot.
pub(super) fn only_event(attempts: u32) -> Vec<StoredEvent> {
    Journal::after(attempts).close()
}

pub(super) fn to_value(report: &Report) -> Value {
    serde_json::to_value(report).expect("a report has only names for keys, which JSON can write")
}

fn to_second(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::Secs, true)
}
