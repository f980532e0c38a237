//! Every decision, told as it is made and summed up in the end.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

use sandbox_core::{
    ConnectionRecord, Decision, NetworkEvent, NetworkReport, QuestionRecord, Transport,
};

/// So many different places and names are told of: a program can try more than anyone wants to read. What was allowed
/// has room of its own, so that nobody hides in the rest where they got to.
const MAX_RECORDS: usize = 1000;
/// So many decisions are told as they are made. All of them are in the report.
const MAX_EVENTS: usize = 2000;

/// What is written down, by the thread that serves, and read by the one that watches.
pub(super) struct Journal {
    /// Readable when there are events.
    pub(super) news: OwnedFd,
    entries: Mutex<Entries>,
}

#[derive(Default)]
struct Entries {
    connections: BTreeMap<Place, Counts>,
    questions: BTreeMap<Question, u64>,
    events: Vec<NetworkEvent>,
    connections_kept: Room,
    questions_kept: Room,
    told: Room,
    truncated: bool,
}

/// How much is taken, by what was allowed and by what was not.
#[derive(Default)]
struct Room([usize; 2]);

impl Room {
    /// Takes a place, if there is one.
    fn take(&mut self, decision: Decision, most: usize) -> bool {
        let taken = &mut self.0[usize::from(decision == Decision::Allowed)];
        let has_room = *taken < most;
        *taken += usize::from(has_room);
        has_room
    }
}

/// Connections that are told as one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) host: String,
    pub(super) address: IpAddr,
    pub(super) port: u16,
    pub(super) transport: Transport,
    pub(super) decision: Decision,
    pub(super) reason: Option<String>,
}

/// Questions that are told as one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Question {
    pub(super) name: String,
    pub(super) kind: String,
    pub(super) decision: Decision,
    pub(super) reason: Option<String>,
    pub(super) addresses: Vec<IpAddr>,
}

#[derive(Clone, Copy, Default)]
struct Counts {
    connections: u64,
    bytes_in: u64,
    bytes_out: u64,
}

impl Journal {
    pub(super) fn new(news: OwnedFd) -> Self {
        Self { news, entries: Mutex::default() }
    }

    /// One more connection or datagram.
    pub(super) fn connection(&self, place: &Place) {
        let mut entries = self.lock();
        if let Some(counts) = entries.connections.get_mut(place) {
            counts.connections += 1;
        } else if entries.connections_kept.take(place.decision, MAX_RECORDS) {
            let counts = Counts { connections: 1, ..Counts::default() };
            entries.connections.insert(place.clone(), counts);
        } else {
            entries.truncated = true;
            return;
        }
        let Place { host, address, port, transport, decision, reason } = place.clone();
        let address = address.to_string();
        let event = NetworkEvent::Connection { host, address, port, transport, decision, reason };
        self.tell(&mut entries, decision, event);
    }

    /// Bytes that went through connections to a place.
    pub(super) fn bytes(&self, place: &Place, bytes_in: u64, bytes_out: u64) {
        if let Some(counts) = self.lock().connections.get_mut(place) {
            counts.bytes_in += bytes_in;
            counts.bytes_out += bytes_out;
        }
    }

    /// One more question.
    pub(super) fn question(&self, question: &Question) {
        let mut entries = self.lock();
        if let Some(count) = entries.questions.get_mut(question) {
            *count += 1;
        } else if entries.questions_kept.take(question.decision, MAX_RECORDS) {
            entries.questions.insert(question.clone(), 1);
        } else {
            entries.truncated = true;
            return;
        }
        let Question { name, kind, decision, reason, addresses } = question.clone();
        let addresses = addresses.iter().map(ToString::to_string).collect();
        let event = NetworkEvent::Question { name, kind, decision, reason, addresses };
        self.tell(&mut entries, decision, event);
    }

    /// There was more than could be heard.
    pub(super) fn lost_some(&self) {
        self.lock().truncated = true;
    }

    fn tell(&self, entries: &mut Entries, decision: Decision, event: NetworkEvent) {
        if !entries.told.take(decision, MAX_EVENTS) {
            return;
        }
        entries.events.push(event);
        // A full counter is as good as one more.
        let _ = rustix::io::write(&self.news, &1_u64.to_ne_bytes());
    }

    pub(super) fn take_events(&self) -> Vec<NetworkEvent> {
        let mut counter = [0; 8];
        let mut entries = self.lock();
        let _ = rustix::io::read(&self.news, &mut counter);
        std::mem::take(&mut entries.events)
    }

    pub(super) fn report(&self) -> NetworkReport {
        let entries = self.lock();
        let connections = entries.connections.iter().map(|(place, counts)| ConnectionRecord {
            host: place.host.clone(),
            address: place.address.to_string(),
            port: place.port,
            transport: place.transport,
            decision: place.decision,
            reason: place.reason.clone(),
            count: counts.connections,
            bytes_in: counts.bytes_in,
            bytes_out: counts.bytes_out,
        });
        let dns = entries.questions.iter().map(|(question, count)| QuestionRecord {
            name: question.name.clone(),
            kind: question.kind.clone(),
            decision: question.decision,
            reason: question.reason.clone(),
            addresses: question.addresses.iter().map(ToString::to_string).collect(),
            count: *count,
        });
        NetworkReport {
            connections: connections.collect(),
            dns: dns.collect(),
            truncated: entries.truncated,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Entries> {
        // Nothing is left half changed by a panic.
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{EventfdFlags, eventfd};

    fn place(port: u16, decision: Decision) -> Place {
        Place {
            host: "example.org".into(),
            address: "192.0.2.1".parse().unwrap(),
            port,
            transport: Transport::Tcp,
            decision,
            reason: None,
        }
    }

    #[test]
    fn what_is_alike_is_told_once_and_counted() {
        let journal = Journal::new(eventfd(0, EventfdFlags::NONBLOCK).unwrap());
        for port in [80, 80, 81] {
            journal.connection(&place(port, Decision::Allowed));
        }
        journal.bytes(&place(80, Decision::Allowed), 5, 7);
        assert_eq!(journal.take_events().len(), 3);
        assert!(journal.take_events().is_empty());
        let report = journal.report();
        let told: Vec<_> =
            report.connections.iter().map(|record| (record.port, record.count)).collect();
        assert_eq!(told, [(80, 2), (81, 1)]);
        assert_eq!((report.connections[0].bytes_in, report.connections[0].bytes_out), (5, 7));
    }

    #[test]
    fn a_flood_is_bounded_and_said_to_be_one() {
        let journal = Journal::new(eventfd(0, EventfdFlags::NONBLOCK).unwrap());
        for port in 0..5000 {
            journal.connection(&place(port, Decision::Refused));
        }
        let report = journal.report();
        assert_eq!((report.connections.len(), report.truncated), (MAX_RECORDS, true));
        assert_eq!(journal.take_events().len(), MAX_RECORDS);
        // It hides nothing of what got through.
        journal.connection(&place(443, Decision::Allowed));
        journal.bytes(&place(443, Decision::Allowed), 5, 7);
        assert_eq!(journal.take_events().len(), 1);
        let report = journal.report();
        let allowed = report.connections.iter().find(|record| record.decision == Decision::Allowed);
        assert_eq!(allowed.map(|record| (record.port, record.bytes_in)), Some((443, 5)));
    }
}
