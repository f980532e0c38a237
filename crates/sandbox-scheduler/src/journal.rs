//! The events of one unfinished execution.
//!
//! A program may write a million times where one write would do. Output is therefore buffered in an open chunk,
//! which becomes an event when it is large enough, when another event follows, or when a reader has read
//! everything before it. A live reader sees output as it is written, and without readers there are few events.
//! Events never change, so a sequence number means the same to every reader.

use std::time::{Duration, Instant};

use sandbox::{Event, EventKind, StreamKind};
use sandbox_store::StoredEvent;

/// A chunk of output becomes an event at this size.
const MAX_CHUNK_BYTES: usize = 16 * 1024;
/// Up to this number of events, the open chunk becomes an event as soon as a reader asks for it.
const MAX_EAGER_EVENTS: usize = 256;
/// Beyond that, at most one open chunk per interval becomes an event for a reader.
const MIN_READ_INTERVAL: Duration = Duration::from_millis(10);
/// From this number of events on, usage samples are dropped.
const MAX_EVENTS_WITH_USAGE: usize = 50_000;
/// The maximum number of events in a batch, and the size at which a batch is full. A slow reader holds one batch in
/// memory.
const MAX_BATCH_EVENTS: usize = 64;
const MAX_BATCH_BYTES: usize = 256 * 1024;

/// The sequence numbers reserved for one attempt. After a crash of the server an execution runs again, and nobody knows
/// which events of the first attempt were sent. Events of the second attempt have larger numbers than any of the
/// first, so a reader that resumes after the last number it saw misses nothing.
const SEQ_PER_ATTEMPT: u64 = 1 << 32;

#[derive(Default)]
pub(crate) struct Journal {
    /// The sequence number before the first event.
    before: u64,
    /// Without gaps.
    events: Vec<StoredEvent>,
    open: Option<(StreamKind, Vec<u8>)>,
    /// When the open chunk last became an event for a reader.
    closed_for_reader: Option<Instant>,
    is_closed: bool,
}

/// The result of a read.
pub(crate) enum Reading {
    /// The next events, at least one.
    Events(Vec<StoredEvent>),
    /// There is output that becomes an event at this time.
    Later(Instant),
    /// There are no more events yet.
    Nothing,
}

impl Journal {
    /// Creates the journal of an execution with this number of earlier attempts.
    pub(crate) fn after(attempts: u32) -> Self {
        Self { before: u64::from(attempts) * SEQ_PER_ATTEMPT, ..Self::default() }
    }

    /// Adds an event.
    pub(crate) fn add(&mut self, kind: EventKind) {
        self.close_chunk();
        self.push(kind);
    }

    /// Appends output.
    pub(crate) fn write(&mut self, stream: StreamKind, bytes: &[u8]) {
        match &mut self.open {
            Some((open, chunk)) if *open == stream => chunk.extend_from_slice(bytes),
            _ => {
                self.close_chunk();
                self.open = Some((stream, bytes.to_vec()));
            }
        }
        if self.open.as_ref().is_some_and(|(_, chunk)| chunk.len() >= MAX_CHUNK_BYTES) {
            self.close_chunk();
        }
    }

    /// Whether usage samples are dropped.
    pub(crate) fn drops_usage(&self) -> bool {
        self.events.len() >= MAX_EVENTS_WITH_USAGE
    }

    /// Ends the journal with a placeholder for the report, which is stored once, next to the events.
    pub(crate) fn close(&mut self) -> Vec<StoredEvent> {
        if !std::mem::replace(&mut self.is_closed, true) {
            self.close_chunk();
            let seq = self.next_seq();
            self.events.push(StoredEvent { seq, json: report_placeholder(seq) });
        }
        self.events.clone()
    }

    /// Reads the events after this sequence number.
    pub(crate) fn read(&mut self, after: u64) -> Reading {
        let from = usize::try_from(after.saturating_sub(self.before)).unwrap_or(usize::MAX);
        if from == self.events.len() && self.open.is_some() {
            let now = Instant::now();
            if self.events.len() >= MAX_EAGER_EVENTS
                && let Some(at) = self.closed_for_reader.map(|at| at + MIN_READ_INTERVAL)
                && at > now
            {
                return Reading::Later(at);
            }
            self.close_chunk();
            self.closed_for_reader = Some(now);
        }
        match self.events.get(from..) {
            Some([]) | None => Reading::Nothing,
            Some(rest) => Reading::Events(batch(rest)),
        }
    }

    fn close_chunk(&mut self) {
        if let Some((stream, chunk)) = self.open.take() {
            self.push(EventKind::Output(stream, chunk));
        }
    }

    fn push(&mut self, kind: EventKind) {
        let seq = self.next_seq();
        let json = serde_json::to_string(&Event { seq, kind })
            .expect("an event has only names and numbers for keys, which JSON can write");
        self.events.push(StoredEvent { seq, json });
    }

    fn next_seq(&self) -> u64 {
        self.before + self.events.len() as u64 + 1
    }
}

/// The first events up to the size of a batch, at least one.
fn batch(events: &[StoredEvent]) -> Vec<StoredEvent> {
    let mut bytes = 0;
    let fits = |event: &&StoredEvent| {
        let is_room = bytes < MAX_BATCH_BYTES;
        bytes += event.json.len();
        is_room
    };
    events.iter().take(MAX_BATCH_EVENTS).take_while(fits).cloned().collect()
}

fn report_placeholder(seq: u64) -> String {
    format!(r#"{{"seq":{seq},"type":"report"}}"#)
}

/// Whether this is the placeholder of the report.
pub(crate) fn is_report_placeholder(event: &StoredEvent) -> bool {
    event.json == report_placeholder(event.seq)
}

/// The event as clients see it: the placeholder is replaced by the report.
pub(crate) fn with_report(event: StoredEvent, report: &str) -> StoredEvent {
    if !is_report_placeholder(&event) {
        return event;
    }
    let seq = event.seq;
    StoredEvent { seq, json: format!(r#"{{"seq":{seq},"type":"report","report":{report}}}"#) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use StreamKind::{Stderr, Stdout};

    fn texts(reading: Reading) -> Vec<String> {
        match reading {
            Reading::Events(events) => events.into_iter().map(|event| event.json).collect(),
            _ => Vec::new(),
        }
    }

    #[test]
    fn output_is_gathered_while_nobody_looks() {
        let mut journal = Journal::default();
        for _ in 0..1000 {
            journal.write(Stdout, b"a");
        }
        journal.write(Stderr, b"b");
        journal.write(Stderr, b"c");
        let events = journal.close();
        assert_eq!(events.len(), 3);
        assert!(events[0].json.contains(&"a".repeat(1000)));
        assert_eq!(events[1].json, r#"{"seq":2,"type":"stderr","data":"bc"}"#);
        assert_eq!(events[2].json, r#"{"seq":3,"type":"report"}"#);
    }

    #[test]
    fn a_reader_sees_output_as_it_comes_and_changes_no_number() {
        let mut journal = Journal::default();
        journal.write(Stdout, b"a");
        assert_eq!(texts(journal.read(0)), [r#"{"seq":1,"type":"stdout","data":"a"}"#]);
        journal.write(Stdout, b"b");
        // Somebody who is behind first gets what is there.
        assert_eq!(texts(journal.read(0)), [r#"{"seq":1,"type":"stdout","data":"a"}"#]);
        journal.write(Stdout, b"c");
        assert_eq!(texts(journal.read(1)), [r#"{"seq":2,"type":"stdout","data":"bc"}"#]);
        assert!(matches!(journal.read(2), Reading::Nothing));
        assert!(matches!(journal.read(u64::MAX), Reading::Nothing));
    }

    #[test]
    fn another_attempt_goes_on_with_larger_numbers() {
        let mut first = Journal::after(0);
        first.add(EventKind::Queued);
        assert_eq!(texts(first.read(0)), [r#"{"seq":1,"type":"queued"}"#]);
        let mut second = Journal::after(1);
        second.add(EventKind::Queued);
        second.write(Stdout, b"a");
        let queued = r#"{"seq":4294967297,"type":"queued"}"#;
        let output = r#"{"seq":4294967298,"type":"stdout","data":"a"}"#;
        assert_eq!(texts(second.read(57)), [queued], "who saw the first attempt sees the second");
        assert_eq!(texts(second.read(4_294_967_297)), [output]);
        assert_eq!(second.close()[2].seq, 4_294_967_299);
    }

    #[test]
    fn readers_do_not_make_an_event_of_every_byte_for_ever() {
        let mut journal = Journal::default();
        let mut later = 0;
        for _ in 0..MAX_EAGER_EVENTS + 10 {
            journal.write(Stdout, b"a");
            later +=
                u32::from(matches!(journal.read(journal.events.len() as u64), Reading::Later(_)));
        }
        assert!(later > 0);
        let events = journal.close();
        let count: usize = events.iter().map(|event| event.json.matches('a').count()).sum();
        // Each of them also says "data", which has two.
        assert_eq!(count - 2 * (events.len() - 1), MAX_EAGER_EVENTS + 10);
    }

    #[test]
    fn a_reader_gets_no_more_at_once_than_it_can_hold() {
        let mut journal = Journal::default();
        for _ in 0..8 {
            journal.write(Stdout, &vec![b'a'; MAX_BATCH_BYTES / 2]);
        }
        assert_eq!(texts(journal.read(0)).len(), 2);
        journal.write(Stdout, &vec![b'a'; MAX_BATCH_BYTES * 2]);
        assert_eq!(texts(journal.read(8)).len(), 1, "however large the first is");
    }

    #[test]
    fn only_the_last_event_gets_the_report() {
        let mut journal = Journal::default();
        journal.write(Stdout, br#"{"seq":1,"type":"report"}"#);
        let events = journal.close();
        let report = r#"{"id":"x"}"#;
        let told: Vec<_> = events.iter().map(|event| with_report(event.clone(), report)).collect();
        assert_eq!(told[0], events[0]);
        assert_eq!(told[1].json, r#"{"seq":2,"type":"report","report":{"id":"x"}}"#);
    }
}
