use std::sync::Arc;

use chrono::{DateTime, Utc};
use futures_util::future::BoxFuture;

use crate::{
    AuditRecord, Busy, CallbackEnd, DueCallback, Ending, ExecutionFilter, ExecutionRecord, Glance,
    Inserted, KeyRecord, NewExecution, NewKey, Page, Permissions, Retention, StoreError,
    StoredEvent, Swept,
};

/// The answer of a store, later.
pub type Answer<'a, T> = BoxFuture<'a, Result<T, StoreError>>;

/// What a server remembers. What was answered is there after a crash.
///
/// A write is asked for by the call, not by waiting for its answer: writes are carried out in the order of
/// the calls, also those whose answer nobody waits for, and whoever reads sees every write that was asked
/// for before.
pub trait Store: Send + Sync {
    /// Remembers an accepted execution, as `queued` or as begun.
    fn insert(&self, new: NewExecution) -> Answer<'static, Inserted>;

    /// An execution, whoever's it is: the caller checks that.
    fn execution<'a>(&'a self, id: &'a str) -> Answer<'a, Option<ExecutionRecord>>;

    /// The same without what may be long: its request and its report.
    fn glance<'a>(&'a self, id: &'a str) -> Answer<'a, Option<Glance>>;

    /// Executions that fit, the newest first.
    fn list(&self, filter: ExecutionFilter) -> Answer<'_, Page>;

    /// It was begun: `running`, and one attempt more.
    fn begin<'a>(&'a self, id: &'a str, at: DateTime<Utc>) -> Answer<'a, ()>;

    /// It waits again: `queued`.
    fn put_back<'a>(&'a self, id: &'a str) -> Answer<'a, ()>;

    /// It is over, in one step. Only the first end counts; false if it was over already.
    fn finish(&self, ending: Ending) -> Answer<'static, bool>;

    /// Remembers one that is over already, in one step: all of it is there, or nothing.
    fn insert_finished(&self, new: Arc<NewExecution>, ending: Ending) -> Answer<'static, bool>;

    /// The events of a finished execution after this one, in order, at most so many.
    fn events<'a>(&'a self, id: &'a str, after: u64, most: u32) -> Answer<'a, Vec<StoredEvent>>;

    /// Those that are `queued` or `running`, the oldest first: what a start finds after a crash.
    fn unfinished(&self) -> Answer<'_, Vec<ExecutionRecord>>;

    /// Callbacks of finished executions that are to be sent now, those that are due longest first, at
    /// most so many.
    fn due_callbacks(
        &self,
        now: DateTime<Utc>,
        busy: Busy,
        most: u32,
    ) -> Answer<'_, Vec<DueCallback>>;

    /// A callback was tried.
    fn callback_tried<'a>(&'a self, id: &'a str, end: CallbackEnd) -> Answer<'a, ()>;

    /// Remembers a key.
    fn add_key(&self, key: NewKey) -> Answer<'_, ()>;

    /// All keys, those that were taken back included.
    fn keys(&self) -> Answer<'_, Vec<KeyRecord>>;

    /// Takes a key back; false if there is none such that is valid.
    fn revoke_key<'a>(&'a self, id: &'a str, at: DateTime<Utc>) -> Answer<'a, bool>;

    /// Replaces the permissions of a key; false if there is no valid key of this id.
    fn set_key_permissions<'a>(&'a self, id: &'a str, permissions: Permissions)
    -> Answer<'a, bool>;

    /// Writes into the audit log.
    fn audit(&self, record: AuditRecord) -> Answer<'_, ()>;

    /// The newest entries of the audit log.
    fn audit_log(&self, most: u32) -> Answer<'_, Vec<AuditRecord>>;

    /// Removes what is older than it should be, or too much. Idempotency records go after a day.
    fn sweep(&self, retention: Retention, now: DateTime<Utc>) -> Answer<'_, Swept>;

    /// How many bytes it takes on the disk.
    fn size(&self) -> Answer<'_, u64>;

    /// Whether it answers.
    fn ping(&self) -> Answer<'_, ()>;

    /// Whether it can store something now: tried by writing.
    fn probe(&self) -> Answer<'_, ()>;

    /// Whether the last write failed for a reason that may make the next one fail too.
    fn is_failing(&self) -> bool;

    /// Whether the next write may well fail: the last one did, or there is little room. It costs next to
    /// nothing to ask.
    fn is_in_doubt(&self) -> bool;

    /// Whether so much waits to be written that whoever makes more of it should wait.
    fn is_backlogged(&self) -> bool;

    /// Completes the writes that were asked for and closes it. Nothing is lost without that; the next start
    /// has less to do.
    fn close(&self) -> BoxFuture<'_, ()>;
}
