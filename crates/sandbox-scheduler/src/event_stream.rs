use std::collections::VecDeque;
use std::sync::Arc;

use sandbox_store::{Store, StoreError, StoredEvent};

use crate::bus::LiveEvents;
use crate::error::SchedulerError;
use crate::journal::{is_report_placeholder, with_report};

/// The number of events that are read from the store at once. Most executions have fewer; those with more have large
/// ones, which a slow reader keeps in memory.
const PAGE: u32 = 32;

/// The events of an execution behind a sequence number, in order, each once: the past ones, then the live ones, until
/// the report. A slow reader delays nobody, because events wait in memory or in the store.
pub struct EventStream {
    source: Source,
    /// Read from the source and not yet returned.
    ready: VecDeque<StoredEvent>,
}

enum Source {
    Live(Box<dyn LiveEvents>),
    Stored {
        store: Arc<dyn Store>,
        id: String,
        /// The sequence number of the last event that was read.
        after: u64,
    },
    Ended,
}

impl EventStream {
    /// The events of an unfinished execution.
    pub(crate) fn live(events: Box<dyn LiveEvents>) -> Self {
        Self { source: Source::Live(events), ready: VecDeque::new() }
    }

    /// The events of a stored execution. There are none if it has not finished.
    pub(crate) fn stored(store: Arc<dyn Store>, id: String, is_finished: bool, after: u64) -> Self {
        let source = if is_finished { Source::Stored { store, id, after } } else { Source::Ended };
        Self { source, ready: VecDeque::new() }
    }

    /// Returns the next event; none after the last. Cancel-safe: the future may be dropped and `next` called again.
    pub async fn next(&mut self) -> Option<Result<StoredEvent, SchedulerError>> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(Ok(event));
            }
            let events = match &mut self.source {
                Source::Live(events) => Ok(events.next().await),
                Source::Stored { store, id, after } => {
                    let events = read_stored(&**store, id, *after).await;
                    if let Some(last) = events.as_ref().ok().and_then(|events| events.last()) {
                        *after = last.seq;
                    }
                    events
                }
                Source::Ended => return None,
            };
            match events {
                Ok(events) if events.is_empty() => self.source = Source::Ended,
                Ok(events) => self.ready.extend(events),
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
