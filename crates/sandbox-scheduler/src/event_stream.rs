use std::collections::VecDeque;
use std::sync::Arc;

use sandbox_store::{Store, StoreError, StoredEvent};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::error::SchedulerError;
use crate::execution::{Execution, Outcome};
use crate::journal::{Reading, is_report_placeholder, with_report};

/// The number of events that are read from the store at once. Most executions have fewer; those with more have large
/// ones, which a slow reader keeps in memory.
const PAGE: u32 = 32;

/// The events of an execution behind a sequence number, in order, each once: the past ones, then the live ones, until
/// the report. A slow reader delays nobody, because events wait in memory or in the store.
pub struct EventStream {
    source: Source,
    /// The sequence number of the last event that was read from the source.
    after: u64,
    /// Read from the source and not yet returned.
    ready: VecDeque<StoredEvent>,
}

enum Source {
    Live(Arc<Execution>, watch::Receiver<()>),
    Stored { store: Arc<dyn Store>, id: String },
    Ended,
}

impl EventStream {
    /// The events of an unfinished execution.
    pub(crate) fn live(execution: Arc<Execution>, after: u64) -> Self {
        let changes = execution.changes();
        Self { source: Source::Live(execution, changes), after, ready: VecDeque::new() }
    }

    /// The events of a stored execution. There are none if it has not finished.
    pub(crate) fn stored(store: Arc<dyn Store>, id: String, is_finished: bool, after: u64) -> Self {
        let source = if is_finished { Source::Stored { store, id } } else { Source::Ended };
        Self { source, after, ready: VecDeque::new() }
    }

    /// Returns the next event; none after the last. Cancel-safe: the future may be dropped and `next` called again.
    pub async fn next(&mut self) -> Option<Result<StoredEvent, SchedulerError>> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(Ok(event));
            }
            let events = match &mut self.source {
                Source::Live(execution, changes) => {
                    Ok(read_live(execution, changes, self.after).await)
                }
                Source::Stored { store, id } => read_stored(&**store, id, self.after).await,
                Source::Ended => return None,
            };
            match events {
                Ok(events) => {
                    match events.last() {
                        Some(last) => self.after = last.seq,
                        None => self.source = Source::Ended,
                    }
                    self.ready.extend(events);
                }
                Err(error) => {
                    self.source = Source::Ended;
                    return Some(Err(error.into()));
                }
            }
        }
    }
}

/// Reads events from the store. The report is read alone, after everything else was returned: it may be large, and
/// a slow reader should not keep it.
async fn read_stored(
    store: &dyn Store,
    id: &str,
    after: u64,
) -> Result<Vec<StoredEvent>, StoreError> {
    let mut events = store.events(id, after, PAGE).await?;
    if !events.last().is_some_and(is_report_placeholder) {
        return Ok(events);
    }
    if events.len() > 1 {
        events.pop();
        return Ok(events);
    }
    let report = store.execution(id).await?.and_then(|record| record.report);
    let report = report.map(|report| report.to_string()).unwrap_or_default();
    Ok(events.into_iter().map(|event| with_report(event, &report)).collect())
}

/// Waits for events of an unfinished execution; returns none if there will be no more.
async fn read_live(
    execution: &Execution,
    changes: &mut watch::Receiver<()>,
    after: u64,
) -> Vec<StoredEvent> {
    loop {
        // A change from here on ends the wait below.
        changes.borrow_and_update();
        let outcome = execution.outcome();
        match (execution.read(after), outcome) {
            (Reading::Events(mut events), Some(Outcome::Finished(report))) => {
                if let Some(last) = events.pop() {
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
        if changes.changed().await.is_err() {
            return Vec::new();
        }
    }
}
