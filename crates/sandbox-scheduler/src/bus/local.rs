use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use sandbox_store::{Store, StoredEvent};
use tokio::sync::watch;
use tokio::time::Instant;

use super::{Bus, LiveEvents};
use crate::execution::{Execution, Outcome};
use crate::journal::{Reading, is_report_placeholder, with_report};
use crate::registry::Registry;

/// The bus of a single process.
pub(crate) struct LocalBus {
    registry: Arc<Registry>,
    store: Arc<dyn Store>,
}

/// The events of an execution in this process. A slow reader delays nobody, because events wait in its journal.
struct LocalEvents {
    store: Arc<dyn Store>,
    execution: Arc<Execution>,
    changes: watch::Receiver<()>,
    /// The sequence number of the last event that was returned.
    after: u64,
}

impl LocalBus {
    pub(crate) fn new(registry: Arc<Registry>, store: Arc<dyn Store>) -> Self {
        Self { registry, store }
    }
}

impl Bus for LocalBus {
    fn cancel<'a>(&'a self, id: &'a str) -> BoxFuture<'a, bool> {
        let found = self.registry.get(id);
        if let Some(execution) = &found {
            execution.cancel_by_client();
        }
        ready(found.is_some()).boxed()
    }

    fn subscribe<'a>(
        &'a self,
        id: &'a str,
        after: u64,
    ) -> BoxFuture<'a, Option<Box<dyn LiveEvents>>> {
        let events = |execution| live_events(execution, Arc::clone(&self.store), after);
        ready(self.registry.get(id).map(events)).boxed()
    }
}

/// The events of an execution in this process after this sequence number.
pub(crate) fn live_events(
    execution: Arc<Execution>,
    store: Arc<dyn Store>,
    after: u64,
) -> Box<dyn LiveEvents> {
    let changes = execution.changes();
    Box::new(LocalEvents { store, execution, changes, after })
}

impl LiveEvents for LocalEvents {
    fn next(&mut self) -> BoxFuture<'_, Vec<StoredEvent>> {
        async move {
            let events = self.read().await;
            if let Some(last) = events.last() {
                self.after = last.seq;
            }
            events
        }
        .boxed()
    }
}

impl LocalEvents {
    async fn read(&mut self) -> Vec<StoredEvent> {
        loop {
            // A change from here on ends the wait below.
            self.changes.borrow_and_update();
            let outcome = self.execution.outcome();
            match (self.execution.read(self.after), outcome) {
                (Reading::Events(mut events), Some(Outcome::Finished(report))) => {
                    if let Some(last) = events.pop_if(|event| is_report_placeholder(event)) {
                        let report = self.execution.with_stored(report, &*self.store).await;
                        events.push(with_report(last, &report.json));
                    }
                    return events;
                }
                (Reading::Events(mut events), outcome) => {
                    // The placeholder is held back until there is a report.
                    if events.last().is_some_and(is_report_placeholder) {
                        events.pop();
                    }
                    if !events.is_empty() || outcome.is_some() {
                        return events;
                    }
                }
                (Reading::Later(_) | Reading::Nothing, Some(_)) => return Vec::new(),
                (Reading::Later(at), None) => {
                    tokio::time::sleep_until(Instant::from_std(at)).await;
                    continue;
                }
                (Reading::Nothing, None) => {}
            }
            if self.changes.changed().await.is_err() {
                return Vec::new();
            }
        }
    }
}
