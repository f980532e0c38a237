//! The events of one execution while it goes on.
//!
//! A program may write a million times where one write would do. Output is therefore gathered in an
//! open piece, which becomes an event when it is large enough, when something else happens, or when a
//! reader has read everything else and wants it: whoever looks on sees output as it comes, and nobody
//! pays for events that nobody looked at. What became an event stays as it is, so that a number means
//! the same to every reader.

use std::time::{Duration, Instant};

use sandbox::{Event, EventKind, StreamKind};
use sandbox_store::StoredEvent;

/// A piece of output becomes an event at this size.
const LARGE_PIECE: usize = 16 * 1024;
/// So many events are made as quickly as readers ask.
const EAGER_EVENTS: usize = 256;
/// After those, readers that ask for an open piece get it this often.
const READING_PACE: Duration = Duration::from_millis(10);
/// After so many events, samples are no longer told.
const MANY_EVENTS: usize = 50_000;
/// Events that are handed out at once, and bytes after which no more are: what a slow reader has and
/// has not passed on is kept for it alone.
const BATCH: usize = 64;
const LARGE_BATCH: usize = 256 * 1024;

/// Numbers of one attempt. An execution that a crash of the server cut short is run again, and what
/// readers were told of the first attempt is known to nobody: the second one has larger numbers than
/// the first could ever have had, so that whoever reads on after the last number he saw misses nothing.
const NUMBERS_OF_AN_ATTEMPT: u64 = 1 << 32;

#[derive(Default)]
pub(super) struct Journal {
    /// The number before the first one.
    before: u64,
    /// Numbered without gaps.
    events: Vec<StoredEvent>,
    open: Option<(StreamKind, Vec<u8>)>,
    /// When a reader last made an event of the open piece.
    closed_for_reader: Option<Instant>,
    is_closed: bool,
}

/// What a reader gets.
pub(super) enum Reading {
    /// The next events, at least one.
    Events(Vec<StoredEvent>),
    /// There is something, and it can be had then.
    Later(Instant),
    /// Nothing yet.
    Nothing,
}

impl Journal {
    /// The journal of an execution that was begun so often before.
    pub(super) fn after(attempts: u32) -> Self {
        Self { before: u64::from(attempts) * NUMBERS_OF_AN_ATTEMPT, ..Self::default() }
    }

    /// Adds an event.
    pub(super) fn add(&mut self, kind: EventKind) {
        self.close_piece();
        self.push(kind);
    }

    /// Adds to the output.
    pub(super) fn write(&mut self, stream: StreamKind, bytes: &[u8]) {
        match &mut self.open {
            Some((open, piece)) if *open == stream => piece.extend_from_slice(bytes),
            _ => {
                self.close_piece();
                self.open = Some((stream, bytes.to_vec()));
            }
        }
        if self.open.as_ref().is_some_and(|(_, piece)| piece.len() >= LARGE_PIECE) {
            self.close_piece();
        }
    }

    /// Whether there are more events than anybody reads.
    pub(super) fn is_long(&self) -> bool {
        self.events.len() >= MANY_EVENTS
    }

    /// Ends with a place for the report. The report itself is stored once, beside the events.
    pub(super) fn close(&mut self) -> Vec<StoredEvent> {
        if !std::mem::replace(&mut self.is_closed, true) {
            self.close_piece();
            let seq = self.next_seq();
            self.events.push(StoredEvent { seq, json: report_place(seq) });
        }
        self.events.clone()
    }

    /// Events after this one.
    pub(super) fn read(&mut self, after: u64) -> Reading {
        let from = usize::try_from(after.saturating_sub(self.before)).unwrap_or(usize::MAX);
        if from == self.events.len() && self.open.is_some() {
            let now = Instant::now();
            if self.events.len() >= EAGER_EVENTS
                && let Some(at) = self.closed_for_reader.map(|at| at + READING_PACE)
                && at > now
            {
                return Reading::Later(at);
            }
            self.close_piece();
            self.closed_for_reader = Some(now);
        }
        match self.events.get(from..) {
            Some([]) | None => Reading::Nothing,
            Some(rest) => Reading::Events(batch(rest)),
        }
    }

    fn close_piece(&mut self) {
        if let Some((stream, piece)) = self.open.take() {
            self.push(EventKind::Output(stream, piece));
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

/// The first of them, at least one.
fn batch(events: &[StoredEvent]) -> Vec<StoredEvent> {
    let mut bytes = 0;
    let fits = |event: &&StoredEvent| {
        let is_room = bytes < LARGE_BATCH;
        bytes += event.json.len();
        is_room
    };
    events.iter().take(BATCH).take_while(fits).cloned().collect()
}

fn report_place(seq: u64) -> String {
    format!(r#"{{"seq":{seq},"type":"report"}}"#)
}

/// Whether this is the place of the report, and not yet the report.
pub(super) fn is_report_place(event: &StoredEvent) -> bool {
    event.json == report_place(event.seq)
}

/// The event as clients see it: the last one with the report in its place.
pub(super) fn with_report(event: StoredEvent, report: &str) -> StoredEvent {
    if !is_report_place(&event) {
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
        for _ in 0..EAGER_EVENTS + 10 {
            journal.write(Stdout, b"a");
            later +=
                u32::from(matches!(journal.read(journal.events.len() as u64), Reading::Later(_)));
        }
        assert!(later > 0);
        let events = journal.close();
        let count: usize = events.iter().map(|event| event.json.matches('a').count()).sum();
        // Each of them also says "data", which has two.
        assert_eq!(count - 2 * (events.len() - 1), EAGER_EVENTS + 10);
    }

    #[test]
    fn a_reader_gets_no_more_at_once_than_it_can_hold() {
        let mut journal = Journal::default();
        for _ in 0..8 {
            journal.write(Stdout, &vec![b'a'; LARGE_BATCH / 2]);
        }
        assert_eq!(texts(journal.read(0)).len(), 2);
        journal.write(Stdout, &vec![b'a'; LARGE_BATCH * 2]);
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
