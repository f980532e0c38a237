use std::sync::Arc;

use chrono::{DateTime, Utc};
use futures_util::future::BoxFuture;

use crate::{
    AuditRecord, CallbackExclusions, CallbackUpdate, DueCallback, ExecutionFilter, ExecutionRecord,
    ExecutionSummary, FinishedExecution, Idempotency, InsertOutcome, KeyRecord, NewExecution, Page,
    Permissions, Retention, StoreError, StoredEvent, Swept,
};

/// The future returned by the methods of a store.
pub type StoreFuture<'a, T> = BoxFuture<'a, Result<T, StoreError>>;

/// The persistent state of a server. A write whose future has completed survives a crash.
///
/// The call issues a write, not the polling of its future. Writes are applied in the order of the calls, also
/// those whose future is dropped, and a read sees every write that was issued before it.
pub trait Store: Send + Sync {
    /// Inserts an accepted execution as `queued`, or as `running` if it has a start time.
    fn insert(&self, new: NewExecution) -> StoreFuture<'static, InsertOutcome>;

    /// Returns what [`Self::insert`] would find under this idempotency key, if it was used before.
    fn duplicate<'a>(
        &'a self,
        owner: Option<&'a str>,
        idempotency: &'a Idempotency,
    ) -> StoreFuture<'a, Option<InsertOutcome>>;

    /// Returns an execution, whoever its owner is: the caller checks access.
    fn execution<'a>(&'a self, id: &'a str) -> StoreFuture<'a, Option<ExecutionRecord>>;

    /// Returns an execution's owner and status without loading its request and report, which may be large.
    fn summary<'a>(&'a self, id: &'a str) -> StoreFuture<'a, Option<ExecutionSummary>>;

    /// Lists the executions that match the filter, newest first.
    fn list(&self, filter: ExecutionFilter) -> StoreFuture<'_, Page>;

    /// Sets an unfinished execution to `running` and counts an attempt.
    fn mark_running<'a>(&'a self, id: &'a str, at: DateTime<Utc>) -> StoreFuture<'a, ()>;

    /// Sets an unfinished execution back to `queued`.
    fn requeue<'a>(&'a self, id: &'a str) -> StoreFuture<'a, ()>;

    /// Stores the result of an execution atomically. Returns false if it was finished already or is not stored:
    /// only the first result counts.
    fn finish(&self, finished: FinishedExecution) -> StoreFuture<'static, bool>;

    /// Inserts an execution together with its result, atomically.
    fn insert_finished(
        &self,
        new: Arc<NewExecution>,
        finished: FinishedExecution,
    ) -> StoreFuture<'static, bool>;

    /// Returns at most `limit` events of a finished execution, in order, starting behind `after`.
    fn events<'a>(
        &'a self,
        id: &'a str,
        after: u64,
        limit: u32,
    ) -> StoreFuture<'a, Vec<StoredEvent>>;

    /// Returns the `queued` and `running` executions, oldest first, to be recovered after a crash.
    fn unfinished(&self) -> StoreFuture<'_, Vec<ExecutionRecord>>;

    /// Returns at most `limit` callbacks of finished executions that are due, in the order of their due times.
    fn due_callbacks(
        &self,
        now: DateTime<Utc>,
        excluded: CallbackExclusions,
        limit: u32,
    ) -> StoreFuture<'_, Vec<DueCallback>>;

    /// Records an attempt to deliver a callback.
    fn record_callback<'a>(&'a self, id: &'a str, update: CallbackUpdate) -> StoreFuture<'a, ()>;

    /// Adds an API key.
    fn add_key(&self, key: KeyRecord) -> StoreFuture<'_, ()>;

    /// Returns all API keys, revoked ones included.
    fn keys(&self) -> StoreFuture<'_, Vec<KeyRecord>>;

    /// Revokes a key. Returns false if no valid key has this id.
    fn revoke_key<'a>(&'a self, id: &'a str, at: DateTime<Utc>) -> StoreFuture<'a, bool>;

    /// Replaces the permissions of a key. Returns false if no valid key has this id.
    fn set_key_permissions<'a>(
        &'a self,
        id: &'a str,
        permissions: Permissions,
    ) -> StoreFuture<'a, bool>;

    /// Appends an entry to the audit log.
    fn audit(&self, record: AuditRecord) -> StoreFuture<'_, ()>;

    /// Returns at most `limit` entries of the audit log, newest first.
    fn audit_log(&self, limit: u32) -> StoreFuture<'_, Vec<AuditRecord>>;

    /// Removes what exceeds the retention limits. Idempotency records expire after a day.
    fn sweep(&self, retention: Retention, now: DateTime<Utc>) -> StoreFuture<'_, Swept>;

    /// Returns the size on disk, in bytes.
    fn size(&self) -> StoreFuture<'_, u64>;

    /// Checks that the store can be read.
    fn ping(&self) -> StoreFuture<'_, ()>;

    /// Checks that the store can be written, by writing.
    fn probe(&self) -> StoreFuture<'_, ()>;

    /// Whether the last write failed for a reason that may make the next one fail too.
    fn is_failing(&self) -> bool;

    /// Whether the next write is likely to fail or to be slow: the last one failed, the backlog is long, or the
    /// disk is nearly full. Cheap.
    fn is_degraded(&self) -> bool;

    /// Whether the backlog of writes is so long that callers should wait before they add to it.
    fn is_backlogged(&self) -> bool;

    /// Completes the issued writes and closes the store. Without it nothing is lost, but the next start has more
    /// to do.
    fn close(&self) -> BoxFuture<'_, ()>;
}
