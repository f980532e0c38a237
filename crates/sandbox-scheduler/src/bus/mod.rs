//! How a process reaches executions that any process of a deployment runs: to cancel them and to read their live
//! events.

mod local;

use futures_util::future::BoxFuture;
use sandbox_store::StoredEvent;

pub(crate) use local::{LocalBus, live_events};

/// Reaches unfinished executions by id. The caller checks access.
pub(crate) trait Bus: Send + Sync {
    /// Cancels an execution on behalf of its client. Returns false if no process has it.
    fn cancel<'a>(&'a self, id: &'a str) -> BoxFuture<'a, bool>;

    /// Subscribes to the events of an execution after this sequence number. Returns none if no process has it.
    fn subscribe<'a>(
        &'a self,
        id: &'a str,
        after: u64,
    ) -> BoxFuture<'a, Option<Box<dyn LiveEvents>>>;
}

/// The events of an unfinished execution, in order, each once, up to the report.
pub(crate) trait LiveEvents: Send {
    /// Waits for the next events. Returns none when there will be no more. Cancel-safe.
    fn next(&mut self) -> BoxFuture<'_, Vec<StoredEvent>>;
}
