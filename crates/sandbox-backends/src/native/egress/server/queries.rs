//! DNS queries, from the client to the answer, and the listeners that answers open.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use sandbox_core::{Decision, special_address};

use super::super::audit::Query as QueryRecord;
use super::super::connections;
use super::super::dns::{self, Answer, Query};
use super::super::resolver::Resolved;
use super::{ACCEPT_RETRY_DELAY, Server, Token};

/// Results are cached for this long: programs query both address types at once.
const CACHE_LIFETIME: Duration = Duration::from_secs(5);
/// Maximum number of addresses in an answer. Each takes a listener for each port.
const MAX_ADDRESSES: usize = 4;
/// Maximum size of a query.
const MAX_QUERY_BYTES: usize = 4096;
/// Maximum number of TCP clients.
const MAX_CLIENTS: usize = 16;

/// The client that waits for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DnsClient {
    Datagram(SocketAddr),
    Connection(u64),
}

impl Server {
    pub(super) fn take_datagrams(&mut self) {
        let mut bytes = [0; MAX_QUERY_BYTES];
        for _ in 0..64 {
            let Ok((read, from)) = self.datagrams.recv_from(&mut bytes) else { return };
            if let Some(query) = dns::parse(&bytes[..read]) {
                self.ask(DnsClient::Datagram(from), query);
            }
        }
    }

    pub(super) fn accept_dns_client(&mut self) {
        let stream = match self.dns_listener.accept() {
            Ok((stream, _)) => stream,
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return,
            Err(_) => return std::thread::sleep(ACCEPT_RETRY_DELAY),
        };
        if self.dns_clients.len() >= MAX_CLIENTS || stream.set_nonblocking(true).is_err() {
            connections::reset(&stream);
            return;
        }
        let number = self.new_token(Token::DnsClient);
        let data = EventData::new_u64(number);
        if epoll::add(&self.poll, &stream, data, EventFlags::IN).is_ok() {
            self.dns_clients.insert(number, (stream, Vec::new()));
        }
    }

    /// Over TCP each message follows its length.
    pub(super) fn read_dns_client(&mut self, number: u64) {
        let Some((stream, received)) = self.dns_clients.get_mut(&number) else { return };
        let mut bytes = [0; MAX_QUERY_BYTES];
        match stream.read(&mut bytes) {
            Ok(read) if read > 0 && received.len() < 2 * MAX_QUERY_BYTES => {
                received.extend_from_slice(&bytes[..read]);
            }
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return,
            _ => return self.drop_dns_client(number),
        }
        let mut messages = Vec::new();
        while let Some(length) =
            received.get(..2).map(|bytes| usize::from(bytes[0]) << 8 | usize::from(bytes[1]))
        {
            if received.len() < 2 + length {
                break;
            }
            messages.push(received[2..2 + length].to_vec());
            received.drain(..2 + length);
        }
        for query in messages.iter().filter_map(|bytes| dns::parse(bytes)) {
            self.ask(DnsClient::Connection(number), query);
        }
    }

    fn drop_dns_client(&mut self, number: u64) {
        self.tokens.remove(&number);
        self.dns_clients.remove(&number);
    }

    /// Answers a query, or starts a lookup.
    fn ask(&mut self, client: DnsClient, query: Query) {
        self.queries += 1;
        let refusal = if self.queries > self.allow.limits().questions {
            Some("there were too many questions")
        } else if !self.allow.answers(&query.name) {
            Some("nothing allows this name")
        } else {
            None
        };
        if let Some(reason) = refusal {
            self.note(&query, Decision::Refused, Some(reason.to_owned()), &[]);
            return self.reply(client, &query, Answer::NoSuchName);
        }
        if matches!(query.kind, dns::Kind::Other(_)) {
            // The name exists, but has no record of this type.
            self.note(&query, Decision::Allowed, None, &[]);
            return self.reply(client, &query, Answer::Addresses(&[]));
        }
        if self.dns_cache.get(&query.name).is_some_and(|(until, _)| Instant::now() < *until) {
            return self.answer(client, &query);
        }
        let is_under_way = self.waiting.iter().any(|(_, other)| other.name == query.name);
        if !is_under_way {
            self.resolver.begin(query.name.clone());
        }
        self.waiting.push((client, query));
    }

    pub(super) fn handle_resolved(&mut self) {
        for Resolved { name, addresses } in self.resolver.finished() {
            self.dns_cache.insert(name.clone(), (Instant::now() + CACHE_LIFETIME, addresses));
            let (now, later) = std::mem::take(&mut self.waiting)
                .into_iter()
                .partition::<Vec<_>, _>(|(_, query)| query.name == name);
            self.waiting = later;
            for (client, query) in now {
                self.answer(client, &query);
            }
        }
    }

    /// Answers with the resolved addresses that are allowed, and opens listeners for them.
    fn answer(&mut self, client: DnsClient, query: &Query) {
        let found = self.dns_cache.get(&query.name).map(|(_, found)| found.clone());
        let all = match found {
            Some(Ok(all)) => all,
            Some(Err(reason)) => {
                self.note(query, Decision::Failed, Some(reason), &[]);
                return self.reply(client, query, Answer::NoSuchName);
            }
            None => return,
        };
        let ports = self.allow.ports_of(&query.name);
        let mut allowed = Vec::new();
        let mut refusal = None;
        for address in all {
            // A public name must not resolve to an internal address.
            if let Some(what) = special_address(address).filter(|_| !self.allow.covers(address)) {
                refusal = Some(format!("{address} is {what}"));
            } else if query.kind.is_of(&address) && allowed.len() < MAX_ADDRESSES {
                match self.listeners.open_for(address, &ports, &query.name) {
                    Ok(()) => allowed.push(address),
                    Err(Errno::MFILE) => {
                        refusal = Some("there are too many addresses and ports".to_owned());
                    }
                    Err(error) => {
                        refusal = Some(format!("nobody can listen at {address}: {error}"));
                    }
                }
            }
        }
        self.watch_listeners();
        match refusal {
            Some(reason) if allowed.is_empty() => {
                self.note(query, Decision::Refused, Some(reason), &[]);
                self.reply(client, query, Answer::NoSuchName);
            }
            _ => {
                self.note(query, Decision::Allowed, None, &allowed);
                self.reply(client, query, Answer::Addresses(&allowed));
            }
        }
    }

    fn note(
        &self,
        query: &Query,
        decision: Decision,
        reason: Option<String>,
        addresses: &[IpAddr],
    ) {
        let mut addresses = addresses.to_vec();
        addresses.sort_unstable();
        self.audit.query(&QueryRecord {
            name: query.name.clone(),
            kind: query.kind.name(),
            decision,
            reason,
            addresses,
        });
    }

    fn reply(&mut self, client: DnsClient, query: &Query, answer: Answer<'_>) {
        let Some(bytes) = query.answer(answer) else { return };
        match client {
            // A client that misses the answer asks again.
            DnsClient::Datagram(to) => drop(self.datagrams.send_to(&bytes, to)),
            DnsClient::Connection(number) => {
                let Some((stream, _)) = self.dns_clients.get_mut(&number) else { return };
                let length = u16::try_from(bytes.len()).unwrap_or(u16::MAX);
                let message = [&length.to_be_bytes()[..], &bytes].concat();
                // The answer fits in the socket buffer unless the client does not read.
                if stream.write_all(&message).is_err() {
                    self.drop_dns_client(number);
                }
            }
        }
    }
}
