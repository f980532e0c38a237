use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use sandbox_core::Status;
use serde_json::Value;

use crate::{NewCallback, Permissions};

/// An execution as it is remembered.
#[derive(Clone, Debug, PartialEq)]
pub struct ExecutionRecord {
    /// `exec_…`.
    pub id: String,
    /// The key of the client it belongs to; none for clients on loopback without keys.
    pub owner: Option<String>,
    /// The language asked for.
    pub language: String,
    /// What was asked for, as JSON: enough to carry it out again.
    pub request: Value,
    /// How far it is, or how it ended.
    pub status: Status,
    /// The client's own words about it.
    pub labels: BTreeMap<String, String>,
    /// More urgent ones have larger numbers.
    pub priority: i32,
    /// How often it was begun.
    pub attempts: u32,
    /// When it was accepted.
    pub created_at: DateTime<Utc>,
    /// When it was begun.
    pub started_at: Option<DateTime<Utc>>,
    /// When it ended.
    pub finished_at: Option<DateTime<Utc>>,
    /// The report, once there is one.
    pub report: Option<Value>,
}

/// The little of an execution that is quickly read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Glance {
    /// Whose it is.
    pub owner: Option<String>,
    /// How far it is, or how it ended.
    pub status: Status,
}

/// An execution that was just accepted.
#[derive(Clone, Debug, PartialEq)]
pub struct NewExecution {
    /// `exec_…`.
    pub id: String,
    /// Whose it is.
    pub owner: Option<String>,
    /// The language asked for.
    pub language: String,
    /// What was asked for, as JSON text.
    pub request: String,
    /// The client's own words about it.
    pub labels: BTreeMap<String, String>,
    /// More urgent ones have larger numbers.
    pub priority: i32,
    /// When it was accepted.
    pub created_at: DateTime<Utc>,
    /// When it was begun, if that was at once: it is `running` then, for the first time.
    pub begun_at: Option<DateTime<Utc>>,
    /// Under which name the client may ask again without starting it twice.
    pub idempotency: Option<Idempotency>,
    /// Where its report is promised to.
    pub callback: Option<NewCallback>,
}

/// The end of an execution.
#[derive(Clone, Debug, PartialEq)]
pub struct Ending {
    /// Which execution.
    pub id: String,
    /// How it ended.
    pub status: Status,
    /// Its report, as JSON.
    pub report: Arc<str>,
    /// All of its events.
    pub events: Vec<StoredEvent>,
    /// When it ended.
    pub at: DateTime<Utc>,
    /// What the audit log says about it.
    pub audit: AuditRecord,
}

impl Ending {
    /// About how many bytes it takes.
    pub(crate) fn size(&self) -> usize {
        self.report.len() + self.events.iter().map(|event| event.json.len()).sum::<usize>()
    }
}

/// A client's name for a request, and a hash of what it asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Idempotency {
    /// The client's name for it.
    pub key: String,
    /// Of the request's body.
    pub body_hash: String,
}

/// What became of an insertion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Inserted {
    /// It is new.
    New,
    /// The client asked for the same before: this is that execution's id.
    Before(String),
    /// The client used the name before, for something else.
    Conflict,
}

/// One event of an execution, as JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredEvent {
    /// Its number in the execution, from 1.
    pub seq: u64,
    /// The event as clients see it.
    pub json: String,
}

/// Which executions are wanted; what is not said does not matter.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExecutionFilter {
    /// Of this owner only; `Some(None)` is the client without a key.
    pub owner: Option<Option<String>>,
    /// In this language.
    pub language: Option<String>,
    /// With this status.
    pub status: Option<Status>,
    /// With all of these labels.
    pub labels: BTreeMap<String, String>,
    /// Accepted not before.
    pub since: Option<DateTime<Utc>>,
    /// Accepted before.
    pub until: Option<DateTime<Utc>>,
    /// Only those after this place in the listing, which a page told.
    pub cursor: Option<String>,
    /// At most so many.
    pub limit: u32,
}

/// A part of a listing, the newest first.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    /// What is on it.
    pub executions: Vec<ExecutionRecord>,
    /// Where the next one begins, if there is one.
    pub next: Option<String>,
}

/// What a key may be used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// Run code, and read what came of one's own.
    Execute,
    /// Read what came of one's own.
    Read,
    /// Everything, of everyone.
    Admin,
}

impl Scope {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Execute, Self::Read, Self::Admin];

    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Execute => "execute",
            Self::Read => "read",
            Self::Admin => "admin",
        }
    }

    /// The scope that this word stands for.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.name() == name)
    }
}

/// A key as it is remembered: never the key itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRecord {
    /// Its public name.
    pub id: String,
    /// What its owner calls it.
    pub name: String,
    /// A keyed hash of the secret.
    pub hash: Vec<u8>,
    /// What it may be used for.
    pub scopes: Vec<Scope>,
    /// The features that its requests may use.
    pub permissions: Permissions,
    /// When it was made.
    pub created_at: DateTime<Utc>,
    /// When it was taken back.
    pub revoked_at: Option<DateTime<Utc>>,
}

/// A key to be remembered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewKey {
    /// Its public name.
    pub id: String,
    /// What its owner calls it.
    pub name: String,
    /// A keyed hash of the secret.
    pub hash: Vec<u8>,
    /// What it may be used for.
    pub scopes: Vec<Scope>,
    /// The features that its requests may use.
    pub permissions: Permissions,
    /// When it was made.
    pub created_at: DateTime<Utc>,
}

/// Something that somebody did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditRecord {
    /// When.
    pub at: DateTime<Utc>,
    /// Which key, if any.
    pub actor: Option<String>,
    /// What, in a word or two: `execute`, `cancel`, `key.create`.
    pub action: String,
    /// On what: an execution or a key.
    pub subject: String,
    /// What else is worth knowing, as JSON.
    pub detail: Value,
}

/// How long what is over is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Finished executions, not longer than this.
    pub age: Duration,
    /// Not more than this together. Owners share it fairly: the one with the most bytes loses its oldest first.
    pub bytes: u64,
    /// Not more than this of one owner, the oldest going first.
    pub bytes_per_owner: u64,
    /// Not more finished executions than this of one owner, the oldest going first.
    pub executions_per_owner: u64,
    /// Entries of the audit log, not longer than this.
    pub audit: Duration,
    /// Not more entries of the audit log than this. The actor with the most loses its oldest first.
    pub audit_entries: u64,
}

impl Retention {
    /// Keeps everything for ever.
    pub const UNLIMITED: Self = Self {
        age: Duration::MAX,
        bytes: u64::MAX,
        bytes_per_owner: u64::MAX,
        executions_per_owner: u64::MAX,
        audit: Duration::MAX,
        audit_entries: u64::MAX,
    };
}

/// What a sweep removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// So many executions, with their events.
    pub executions: u64,
    /// So many idempotency records.
    pub idempotency: u64,
    /// So many entries of the audit log.
    pub audit: u64,
}
