//! The audit log of a network: every decision, reported immediately and summed up at the end.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

use sandbox_core::{
    ConnectionRecord, Decision, DnsQueryRecord, NetworkEvent, NetworkReport, Transport,
};

/// Maximum number of distinct connections and names in the report. Allowed and refused ones are
/// counted separately, so that a flood of refused ones cannot hide allowed ones.
const MAX_RECORDS: usize = 1000;
/// Maximum number of decisions that are reported immediately. The report contains all of them.
const MAX_EVENTS: usize = 2000;

/// Written by the thread that serves the network, read by the supervisor.
pub(super) struct AuditLog {
    /// Readable when there are events.
    pub(super) events_ready: OwnedFd,
    entries: Mutex<Entries>,
}

#[derive(Default)]
struct Entries {
    connections: BTreeMap<Target, Counts>,
    queries: BTreeMap<Query, u64>,
    events: Vec<NetworkEvent>,
    connections_kept: Quota,
    queries_kept: Quota,
    events_sent: Quota,
    truncated: bool,
}

/// Number of entries, refused and allowed.
#[derive(Default)]
struct Quota([usize; 2]);

impl Quota {
    /// Adds an entry if there is room.
    fn take(&mut self, decision: Decision, most: usize) -> bool {
        let taken = &mut self.0[usize::from(decision == Decision::Allowed)];
        let has_room = *taken < most;
        *taken += usize::from(has_room);
        has_room
    }
}

/// Connections that are counted as one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Target {
    pub(super) host: String,
    pub(super) address: IpAddr,
    pub(super) port: u16,
    pub(super) transport: Transport,
    pub(super) decision: Decision,
    pub(super) reason: Option<String>,
}

/// Queries that are counted as one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Query {
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

impl AuditLog {
    pub(super) fn new(events_ready: OwnedFd) -> Self {
        Self { events_ready, entries: Mutex::default() }
    }

    /// Records a connection or datagram.
    pub(super) fn connection(&self, target: &Target) {
        let mut entries = self.lock();
        if let Some(counts) = entries.connections.get_mut(target) {
            counts.connections += 1;
        } else if entries.connections_kept.take(target.decision, MAX_RECORDS) {
            let counts = Counts { connections: 1, ..Counts::default() };
            entries.connections.insert(target.clone(), counts);
        } else {
            entries.truncated = true;
            return;
        }
        let Target { host, address, port, transport, decision, reason } = target.clone();
        let address = address.to_string();
        let event = NetworkEvent::Connection { host, address, port, transport, decision, reason };
        self.emit(&mut entries, decision, event);
    }

    /// Adds bytes that were transferred to or from a target.
    pub(super) fn bytes(&self, target: &Target, bytes_in: u64, bytes_out: u64) {
        if let Some(counts) = self.lock().connections.get_mut(target) {
            counts.bytes_in += bytes_in;
            counts.bytes_out += bytes_out;
        }
    }

    /// Records a DNS query.
    pub(super) fn query(&self, query: &Query) {
        let mut entries = self.lock();
        if let Some(count) = entries.queries.get_mut(query) {
            *count += 1;
        } else if entries.queries_kept.take(query.decision, MAX_RECORDS) {
            entries.queries.insert(query.clone(), 1);
        } else {
            entries.truncated = true;
            return;
        }
        let Query { name, kind, decision, reason, addresses } = query.clone();
        let addresses = addresses.iter().map(ToString::to_string).collect();
        let event = NetworkEvent::Question { name, kind, decision, reason, addresses };
        self.emit(&mut entries, decision, event);
    }

    /// Marks the report as incomplete.
    pub(super) fn mark_truncated(&self) {
        self.lock().truncated = true;
    }

    fn emit(&self, entries: &mut Entries, decision: Decision, event: NetworkEvent) {
        if !entries.events_sent.take(decision, MAX_EVENTS) {
            return;
        }
        entries.events.push(event);
        // A counter that is full already wakes the reader.
        let _ = rustix::io::write(&self.events_ready, &1_u64.to_ne_bytes());
    }

    pub(super) fn take_events(&self) -> Vec<NetworkEvent> {
        let mut counter = [0; 8];
        let mut entries = self.lock();
        let _ = rustix::io::read(&self.events_ready, &mut counter);
        std::mem::take(&mut entries.events)
    }

    pub(super) fn report(&self) -> NetworkReport {
        let entries = self.lock();
        let connections = entries.connections.iter().map(|(target, counts)| ConnectionRecord {
            host: target.host.clone(),
            address: target.address.to_string(),
            port: target.port,
            transport: target.transport,
            decision: target.decision,
            reason: target.reason.clone(),
            count: counts.connections,
            bytes_in: counts.bytes_in,
            bytes_out: counts.bytes_out,
        });
        let dns = entries.queries.iter().map(|(query, count)| DnsQueryRecord {
            name: query.name.clone(),
            kind: query.kind.clone(),
            decision: query.decision,
            reason: query.reason.clone(),
            addresses: query.addresses.iter().map(ToString::to_string).collect(),
            count: *count,
        });
        NetworkReport {
            connections: connections.collect(),
            dns: dns.collect(),
            truncated: entries.truncated,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Entries> {
        // A panic leaves no entry half changed.
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{EventfdFlags, eventfd};

    fn target(port: u16, decision: Decision) -> Target {
        Target {
            host: "example.org".into(),
            address: "192.0.2.1".parse().unwrap(),
            port,
            transport: Transport::Tcp,
            decision,
            reason: None,
        }
    }

    #[test]
    fn equal_connections_are_counted_as_one() {
        let audit = AuditLog::new(eventfd(0, EventfdFlags::NONBLOCK).unwrap());
        for port in [80, 80, 81] {
            audit.connection(&target(port, Decision::Allowed));
        }
        audit.bytes(&target(80, Decision::Allowed), 5, 7);
        assert_eq!(audit.take_events().len(), 3);
        assert!(audit.take_events().is_empty());
        let report = audit.report();
        let counts: Vec<_> =
            report.connections.iter().map(|record| (record.port, record.count)).collect();
        assert_eq!(counts, [(80, 2), (81, 1)]);
        assert_eq!((report.connections[0].bytes_in, report.connections[0].bytes_out), (5, 7));
    }

    #[test]
    fn a_flood_is_bounded_and_reported() {
        let audit = AuditLog::new(eventfd(0, EventfdFlags::NONBLOCK).unwrap());
        for port in 0..5000 {
            audit.connection(&target(port, Decision::Refused));
        }
        let report = audit.report();
        assert_eq!((report.connections.len(), report.truncated), (MAX_RECORDS, true));
        assert_eq!(audit.take_events().len(), MAX_RECORDS);
        // The flood hides no allowed connection.
        audit.connection(&target(443, Decision::Allowed));
        audit.bytes(&target(443, Decision::Allowed), 5, 7);
        assert_eq!(audit.take_events().len(), 1);
        let report = audit.report();
        let allowed = report.connections.iter().find(|record| record.decision == Decision::Allowed);
        assert_eq!(allowed.map(|record| (record.port, record.bytes_in)), Some((443, 5)));
    }
}
