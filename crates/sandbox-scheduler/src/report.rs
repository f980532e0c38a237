//! Reports that the library does not make: of unfinished executions, and of those that ended without running.

use std::sync::Arc;

use chrono::{DateTime, SecondsFormat, Utc};
use sandbox::{Acceptance, ExecutionId, Report, Status, Timings};
use sandbox_store::ExecutionRecord;
use serde_json::json;

/// A report as JSON, as it is stored and sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredReport {
    /// The current or final status.
    pub status: Status,
    /// The report. It is serialized once.
    pub json: Arc<str>,
}

impl StoredReport {
    /// Whether the execution has finished.
    pub fn is_final(&self) -> bool {
        is_final(self.status)
    }

    /// Adds that the report could not be stored.
    pub(crate) fn not_stored(self) -> Self {
        let fields = self.json.strip_suffix('}').unwrap_or(&self.json);
        Self { json: format!("{fields},\"stored\":false}}").into(), ..self }
    }

    /// The report of an execution that has not finished.
    pub(crate) fn unfinished(
        id: &str,
        status: Status,
        language: &str,
        created_at: DateTime<Utc>,
        started_at: Option<DateTime<Utc>>,
    ) -> Self {
        let json = json!({
            "id": id,
            "status": status,
            "success": null,
            "language": language,
            "exit_code": null,
            "created_at": to_second(created_at),
            "started_at": started_at.map(to_second),
        });
        Self { status, json: json.to_string().into() }
    }
}

impl From<&Report> for StoredReport {
    fn from(report: &Report) -> Self {
        let json = serde_json::to_string(report)
            .expect("a report has only names for keys, which JSON can write");
        Self { status: report.status, json: json.into() }
    }
}

impl From<ExecutionRecord> for StoredReport {
    fn from(record: ExecutionRecord) -> Self {
        let ExecutionRecord { id, status, language, created_at, started_at, report, .. } = record;
        match report {
            Some(report) => Self { status, json: report.to_string().into() },
            None => Self::unfinished(&id, status, &language, created_at, started_at),
        }
    }
}

/// Whether an execution with this status has finished.
pub(crate) fn is_final(status: Status) -> bool {
    !matches!(status, Status::Queued | Status::Running)
}

/// The report of an execution that ended without a sandbox.
pub(crate) fn not_started(
    id: ExecutionId,
    language: &str,
    version: &str,
    acceptance: Acceptance,
    status: Status,
    reason: &str,
) -> Report {
    Report {
        error: Some(reason.to_owned()),
        timings_ms: Timings { queue: Timings::millis(acceptance.waited), ..Timings::default() },
        ..Report::new(id, status, language, version, acceptance.at)
    }
}

fn to_second(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::Secs, true)
}
