use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use sandbox_core::Status;
use serde_json::Value;

/// A stored execution.
#[derive(Clone, Debug, PartialEq)]
pub struct ExecutionRecord {
    /// The id, `exec_…`.
    pub id: String,
    /// The id of the client's key; none for clients on loopback without keys.
    pub owner: Option<String>,
    /// The requested language.
    pub language: String,
    /// The request as JSON, complete enough to run it again.
    pub request: Value,
    /// The current or final status.
    pub status: Status,
    /// Client-defined labels.
    pub labels: BTreeMap<String, String>,
    /// The priority; larger numbers are more urgent.
    pub priority: i32,
    /// How often it was started.
    pub attempts: u32,
    /// When it was accepted.
    pub created_at: DateTime<Utc>,
    /// When it was last started.
    pub started_at: Option<DateTime<Utc>>,
    /// When it finished.
    pub finished_at: Option<DateTime<Utc>>,
    /// The report of a finished execution.
    pub report: Option<Value>,
}

/// The fields of an execution that are small and quick to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecutionSummary {
    /// The owner.
    pub owner: Option<String>,
    /// The current or final status.
    pub status: Status,
}

/// An execution that was just accepted.
#[derive(Clone, Debug, PartialEq)]
pub struct NewExecution {
    /// The id, `exec_…`.
    pub id: String,
    /// The owner.
    pub owner: Option<String>,
    /// The requested language.
    pub language: String,
    /// The request as JSON text.
    pub request: String,
    /// Client-defined labels.
    pub labels: BTreeMap<String, String>,
    /// The priority; larger numbers are more urgent.
    pub priority: i32,
    /// When it was accepted.
    pub created_at: DateTime<Utc>,
    /// When it was started, if that was at once: it is inserted as `running` with one attempt.
    pub started_at: Option<DateTime<Utc>>,
    /// The client's idempotency key, if any.
    pub idempotency: Option<Idempotency>,
    /// The destination of its report, if the client asked for a callback.
    pub callback: Option<NewCallback>,
}

/// The result of an execution.
#[derive(Clone, Debug, PartialEq)]
pub struct FinishedExecution {
    /// The id of the execution.
    pub id: String,
    /// The final status.
    pub status: Status,
    /// The report as JSON text.
    pub report: Arc<str>,
    /// All events.
    pub events: Vec<StoredEvent>,
    /// When it finished.
    pub at: DateTime<Utc>,
    /// The entry for the audit log.
    pub audit: AuditRecord,
}

impl FinishedExecution {
    /// The approximate size in bytes.
    pub(crate) fn size(&self) -> usize {
        self.report.len() + self.events.iter().map(|event| event.json.len()).sum::<usize>()
    }
}

/// An idempotency key of a client, and the request it was used for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Idempotency {
    /// The idempotency key.
    pub key: String,
    /// A hash of the request body.
    pub body_hash: String,
}

/// The outcome of an insertion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InsertOutcome {
    /// The execution was inserted.
    New,
    /// The idempotency key was used before for the same request, by the execution of this id.
    Duplicate(String),
    /// The idempotency key was used before for a different request.
    Conflict,
}

/// One event of an execution, as JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredEvent {
    /// The sequence number within the execution, from 1.
    pub seq: u64,
    /// The event as clients see it.
    pub json: String,
}

/// The destination of an execution's report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewCallback {
    /// The URL.
    pub url: String,
    /// The host of the URL.
    pub host: String,
}

/// A callback of a finished execution that is to be delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DueCallback {
    /// The id of the execution.
    pub execution: String,
    /// The owner of the execution.
    pub owner: Option<String>,
    /// The URL.
    pub url: String,
    /// The host of the URL.
    pub host: String,
    /// The number of failed attempts.
    pub tries: u32,
}

/// Callbacks to leave out of a query, because too many of theirs are in flight.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallbackExclusions {
    /// Callbacks to these hosts.
    pub hosts: Vec<String>,
    /// Callbacks of these owners; `None` is the client without a key.
    pub owners: Vec<Option<String>>,
}

/// What follows an attempt to deliver a callback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallbackUpdate {
    /// Nothing: it was delivered, or is given up.
    Done,
    /// Another attempt, not before this time.
    RetryAt(DateTime<Utc>),
}

/// A filter for executions. Fields that are not set match everything.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExecutionFilter {
    /// Executions of this owner; `Some(None)` is the client without a key.
    pub owner: Option<Option<String>>,
    /// Executions in this language.
    pub language: Option<String>,
    /// Executions with this status.
    pub status: Option<Status>,
    /// Executions with all of these labels.
    pub labels: BTreeMap<String, String>,
    /// Executions accepted at this time or later.
    pub since: Option<DateTime<Utc>>,
    /// Executions accepted before this time.
    pub until: Option<DateTime<Utc>>,
    /// Where to continue: [`Page::next`] of the previous page.
    pub cursor: Option<String>,
    /// The maximum length of the page.
    pub limit: u32,
}

/// One page of a listing, newest first.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    /// The executions on this page.
    pub executions: Vec<ExecutionRecord>,
    /// The cursor of the next page, if there is one.
    pub next: Option<String>,
}

/// An entry of the audit log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditRecord {
    /// The time of the action.
    pub at: DateTime<Utc>,
    /// The id of the key that was used, if any.
    pub actor: Option<String>,
    /// The action: `execute`, `cancel`, `key.create`.
    pub action: String,
    /// The id of the execution or key that the action applies to.
    pub subject: String,
    /// Further details as JSON.
    pub detail: Value,
}

impl AuditRecord {
    /// An action that happens now.
    pub fn new(actor: Option<String>, action: &str, subject: &str, detail: Value) -> Self {
        let (action, subject) = (action.to_owned(), subject.to_owned());
        Self { at: Utc::now(), actor, action, subject, detail }
    }
}

/// The limits on what is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// The maximum age of finished executions.
    pub age: Duration,
    /// The maximum size of all finished executions together. Owners share it fairly: the one with the most bytes
    /// loses its oldest first.
    pub bytes: u64,
    /// The maximum size of one owner's finished executions, the oldest going first.
    pub bytes_per_owner: u64,
    /// The maximum number of one owner's finished executions, the oldest going first.
    pub executions_per_owner: u64,
    /// The maximum age of entries of the audit log.
    pub audit: Duration,
    /// The maximum number of entries of the audit log. The actor with the most loses its oldest first.
    pub audit_entries: u64,
}

impl Retention {
    /// Keeps everything forever.
    pub const UNLIMITED: Self = Self {
        age: Duration::MAX,
        bytes: u64::MAX,
        bytes_per_owner: u64::MAX,
        executions_per_owner: u64::MAX,
        audit: Duration::MAX,
        audit_entries: u64::MAX,
    };
}

/// How much a sweep removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// The number of executions, removed with their events.
    pub executions: u64,
    /// The number of idempotency records.
    pub idempotency: u64,
    /// The number of entries of the audit log.
    pub audit: u64,
}
