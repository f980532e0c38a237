//! What a server remembers, and the queue of what waits.
//!
//! [`Store`] keeps executions, their events and callbacks, keys, idempotency records and the audit log; embedded it
//! is [`SqliteStore`], and a server that has outgrown one machine implements it on another database.
//! [`Queue`] orders what was accepted and not begun; embedded it is [`LocalQueue`]. It may be lost: after
//! a crash it is filled again from the store.

mod callback;
mod cursor;
mod error;
mod fair;
mod permission;
mod queue;
mod record;
mod sqlite;
mod store;

pub use callback::{Busy, CallbackEnd, DueCallback, NewCallback};
pub use error::StoreError;
pub use permission::{Permission, Permissions};
pub use queue::{Job, LocalQueue, Queue, QueueError};
pub use record::{
    AuditRecord, Ending, ExecutionFilter, ExecutionRecord, Glance, Idempotency, Inserted,
    KeyRecord, NewExecution, NewKey, Page, Retention, Scope, StoredEvent, Swept,
};
pub use sqlite::SqliteStore;
pub use store::{Answer, Store};
