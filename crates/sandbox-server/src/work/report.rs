//! Reports of executions that have none of the library's: those that are not over, and those that
//! ended without being carried out.

use std::sync::Arc;

use chrono::{DateTime, SecondsFormat, Utc};
use sandbox::{Acceptance, ExecutionId, Isolation, Report, Stage, Status, Timings};
use sandbox_store::{ExecutionRecord, StoredEvent};
use serde_json::json;

use super::events::Journal;
use super::live::{Live, Outcome};
use super::shared::Shared;

/// A report as clients get it, whole or so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Told {
    /// How far the execution is, or how it ended.
    pub(crate) status: Status,
    /// The report as JSON. It is written once, and then only handed around.
    pub(crate) json: Arc<str>,
}

impl Told {
    /// Whether it is over.
    pub(crate) fn is_final(&self) -> bool {
        is_final(self.status)
    }

    /// The same report, saying that it could not be stored.
    fn unstored(self) -> Self {
        let fields = self.json.strip_suffix('}').unwrap_or(&self.json);
        Self { json: format!("{fields},\"stored\":false}}").into(), ..self }
    }

    pub(super) fn of(report: &Report) -> Self {
        let json = serde_json::to_string(report)
            .expect("a report has only names for keys, which JSON can write");
        Self { status: report.status, json: json.into() }
    }

    fn unfinished(
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

/// Whether an execution with this status is over.
pub(super) fn is_final(status: Status) -> bool {
    !matches!(status, Status::Queued | Status::Running)
}

/// The report so far of an execution that is not over, or the whole.
pub(super) fn of_live(live: &Live) -> Told {
    if let Some(Outcome::Reported(report)) = live.outcome() {
        return report;
    }
    let (status, started_at) = live.progress();
    Told::unfinished(&live.id, status, &live.needs.language, live.created_at, started_at)
}

/// The same for a client that hears of the end now. Where the store is in doubt, it is waited for what comes
/// of storing the end, and a failure is told: otherwise nobody need wait for the disk.
pub(super) async fn of_live_when_stored(shared: &Shared, live: &Live) -> Told {
    let told = of_live(live);
    if told.is_final() && shared.store.is_degraded() && !live.end_stored().await {
        return told.unstored();
    }
    told
}

/// The same of one that is remembered.
pub(super) fn of_record(record: ExecutionRecord) -> Told {
    let ExecutionRecord { id, status, language, created_at, started_at, report, .. } = record;
    match report {
        Some(report) => Told { status, json: report.to_string().into() },
        None => Told::unfinished(&id, status, &language, created_at, started_at),
    }
}

/// The report of an execution that no sandbox was built for.
pub(super) fn not_carried_out(
    id: ExecutionId,
    language: &str,
    version: &str,
    acceptance: Acceptance,
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
        isolation_reason: None,
        image: None,
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
        network: None,
        enforced: Vec::new(),
        missing: Vec::new(),
        violations: Vec::new(),
        timings_ms: Timings { queue: Timings::millis(acceptance.waited), ..Timings::default() },
        created_at: acceptance.at,
    }
}

/// The events of an execution that an earlier run of the server began and this one cannot.
pub(super) fn only_event(attempts: u32) -> Vec<StoredEvent> {
    Journal::after(attempts).close()
}

fn to_second(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::Secs, true)
}
