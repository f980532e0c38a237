use std::collections::VecDeque;
use std::sync::Arc;

use sandbox_api::Problem;
use sandbox_store::{Store, StoreError, StoredEvent};
use tokio::sync::watch;
use tokio::time::Instant;

use super::events::{Reading, is_report_place, with_report};
use super::live::{Live, Outcome};
use super::shared::store_failed;

/// Events that are read from the store at once. Most executions have fewer, and those that have more
/// have large ones, which a slow reader keeps in memory.
const PAGE: u32 = 32;

/// The events of an execution from any number on, in order, each once: those there are, then those that
/// come, until the report. Slow readers hold nobody up, because events wait in memory or in the store.
pub(crate) struct EventStream {
    source: Source,
    /// The number of the last event that was read from the source.
    after: u64,
    /// Read from the source and not yet handed out.
    ready: VecDeque<StoredEvent>,
}

enum Source {
    Live(Arc<Live>, watch::Receiver<()>),
    Stored { store: Arc<dyn Store>, id: String },
    Ended,
}

impl EventStream {
    /// Of an execution that is not over.
    pub(super) fn live(live: Arc<Live>, after: u64) -> Self {
        let news = live.news();
        Self { source: Source::Live(live, news), after, ready: VecDeque::new() }
    }

    /// Of one that is, or that is not carried out here.
    pub(super) fn stored(store: Arc<dyn Store>, id: String, is_over: bool, after: u64) -> Self {
        let source = if is_over { Source::Stored { store, id } } else { Source::Ended };
        Self { source, after, ready: VecDeque::new() }
    }

    /// The next event; none after the last. May be dropped while it waits, and called again.
    pub(crate) async fn next(&mut self) -> Option<Result<StoredEvent, Problem>> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(Ok(event));
            }
            let more = match &mut self.source {
                Source::Live(live, news) => Ok(read_live(live, news, self.after).await),
                Source::Stored { store, id } => {
                    let events = read_stored(&**store, id, self.after).await;
                    events.map_err(|error| store_failed(&error))
                }
                Source::Ended => return None,
            };
            match more {
                Ok(events) => {
                    let events: Vec<StoredEvent> = events;
                    match events.last() {
                        Some(last) => self.after = last.seq,
                        None => self.source = Source::Ended,
                    }
                    self.ready.extend(events);
                }
                Err(problem) => {
                    self.source = Source::Ended;
                    return Some(Err(problem));
                }
            }
        }
    }
}

/// Events after this one. The report comes alone, and is read when all else was handed out: it may be
/// long, and whoever reads slowly should not keep it.
async fn read_stored(
    store: &dyn Store,
    id: &str,
    after: u64,
) -> Result<Vec<StoredEvent>, StoreError> {
    let mut events = store.events(id, after, PAGE).await?;
    if !events.last().is_some_and(is_report_place) {
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

/// Waits for events after this one; none if there will not be any.
async fn read_live(live: &Live, news: &mut watch::Receiver<()>, after: u64) -> Vec<StoredEvent> {
    loop {
        // What happens from here on wakes the wait below.
        news.borrow_and_update();
        let outcome = live.outcome();
        match (live.read(after), outcome) {
            (Reading::Events(mut events), Some(Outcome::Reported(report))) => {
                if let Some(last) = events.pop() {
                    events.push(with_report(last, &report.json));
                }
                return events;
            }
            (Reading::Events(mut events), outcome) => {
                // The place of the report is kept back until there is one.
                if events.last().is_some_and(is_report_place) {
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
        if news.changed().await.is_err() {
            return Vec::new();
        }
    }
}
