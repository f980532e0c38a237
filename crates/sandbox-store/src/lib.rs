//! Persistent state of a server, and the queue of waiting executions.
//!
//! [`Store`] keeps executions with their events and callbacks, API keys, idempotency records and the audit log.
//! The embedded implementation is [`SqliteStore`]; a deployment on several machines can implement the trait on
//! another database.
//! [`Queue`] orders the executions that were accepted and have not started. The embedded implementation is
//! [`LocalQueue`], in memory: after a crash the server refills it from the store.

mod error;
mod key;
mod queue;
mod record;
mod sqlite;
mod store;

pub use error::StoreError;
pub use key::{KeyRecord, Permission, Permissions, Scope};
pub use queue::{
    Capacity, Fit, Job, Lease, LeaseControl, LocalQueue, Queue, QueueError, Resources,
};
pub use record::{
    AuditRecord, CallbackExclusions, CallbackUpdate, DueCallback, ExecutionFilter, ExecutionRecord,
    ExecutionSummary, FinishedExecution, Idempotency, InsertOutcome, NewCallback, NewExecution,
    Page, Retention, StoredEvent, Swept,
};
pub use sqlite::SqliteStore;
pub use store::{Store, StoreFuture};
