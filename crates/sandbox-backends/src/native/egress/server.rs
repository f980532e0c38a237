//! The thread that serves a network: listeners, connections and refused packets; DNS is in
//! `queries`.

mod queries;

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use sandbox_core::{Allowlist, Decision, Transport, special_address};

use super::audit::{AuditLog, Target};
use super::connections::{self, BUFFER_BYTES, Connection, State, TrafficBudget};
use super::dns::Query;
use super::listeners::{ListenAddress, Listeners};
use super::refused::{self, RefusedPacket};
use super::resolver::Resolver;
use queries::DnsClient;

/// How often expired listeners and late connections are closed.
const TICK_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum number of pipes, which bounds kernel memory.
const MAX_PIPES: usize = 64;
/// Delay after an accept that failed for lack of descriptors: it would be retried immediately
/// otherwise.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(10);
/// Maximum number of refused packets that are read; the report says if there were more.
const MAX_PACKETS: u64 = 100_000;

/// What an event refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token {
    Closing,
    Refused,
    Datagrams,
    DnsListener,
    Resolver,
    Listener(ListenAddress),
    Connection(u64),
    DnsClient(u64),
}

pub(super) struct Server {
    allow: Arc<Allowlist>,
    audit: Arc<AuditLog>,
    closing: Arc<OwnedFd>,
    poll: OwnedFd,
    tokens: HashMap<u64, Token>,
    next_token: u64,
    refused: Option<OwnedFd>,
    refused_packets: u64,
    datagrams: UdpSocket,
    dns_listener: TcpListener,
    dns_clients: BTreeMap<u64, (TcpStream, Vec<u8>)>,
    resolver: Resolver,
    resolver_events: Arc<OwnedFd>,
    /// Queries that wait for a lookup.
    waiting: Vec<(DnsClient, Query)>,
    dns_cache: BTreeMap<String, (Instant, Result<Vec<IpAddr>, String>)>,
    queries: u64,
    listeners: Listeners,
    listener_tokens: BTreeMap<ListenAddress, u64>,
    connections: HashMap<u64, Connection>,
    /// Connections that could continue immediately.
    ready: Vec<u64>,
    opened: u64,
    remaining: TrafficBudget,
    buffer: Vec<u8>,
}

impl Server {
    pub(super) fn new(
        first: Vec<OwnedFd>,
        spare: Vec<OwnedFd>,
        allow: Arc<Allowlist>,
        audit: Arc<AuditLog>,
        closing: Arc<OwnedFd>,
    ) -> Result<Self, Errno> {
        let [refused, datagrams, dns_listener] =
            <[OwnedFd; 3]>::try_from(first).map_err(|_| Errno::INVAL)?;
        let events_ready = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let limits = *allow.limits();
        let mut server = Self {
            listeners: Listeners::new(spare, &allow)?,
            allow,
            audit,
            closing,
            poll: epoll::create(CreateFlags::CLOEXEC)?,
            tokens: HashMap::new(),
            next_token: 0,
            refused: Some(refused),
            refused_packets: 0,
            datagrams: UdpSocket::from(datagrams),
            dns_listener: TcpListener::from(dns_listener),
            dns_clients: BTreeMap::new(),
            resolver: Resolver::new(Arc::clone(&events_ready)),
            resolver_events: events_ready,
            waiting: Vec::new(),
            dns_cache: BTreeMap::new(),
            queries: 0,
            listener_tokens: BTreeMap::new(),
            connections: HashMap::new(),
            ready: Vec::new(),
            opened: 0,
            remaining: TrafficBudget {
                bytes_in: limits.bytes_in,
                bytes_out: limits.bytes_out,
                pipes: MAX_PIPES,
            },
            buffer: vec![0; BUFFER_BYTES],
        };
        server.watch_own()?;
        server.watch_listeners();
        Ok(server)
    }

    /// Serves until the network is closed.
    pub(super) fn serve(mut self) {
        let mut next_tick = Instant::now() + TICK_INTERVAL;
        let mut events = Vec::with_capacity(256);
        loop {
            let left = if self.ready.is_empty() {
                next_tick.saturating_duration_since(Instant::now())
            } else {
                Duration::ZERO
            };
            let timeout = Timespec {
                tv_sec: left.as_secs().cast_signed(),
                tv_nsec: left.subsec_nanos().into(),
            };
            events.clear();
            match epoll::wait(&self.poll, spare_capacity(&mut events), Some(&timeout)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(_) => break,
            }
            for number in std::mem::take(&mut self.ready) {
                self.relay(number);
            }
            let tokens: Vec<u64> = events.iter().map(|event| event.data.u64()).collect();
            for token in tokens {
                match self.tokens.get(&token).copied() {
                    Some(Token::Closing) => return self.end(),
                    Some(token) => self.handle_token(token),
                    // Closed by an earlier event of the same batch.
                    None => {}
                }
            }
            let now = Instant::now();
            if next_tick <= now {
                next_tick = now + TICK_INTERVAL;
                self.handle_tick(now);
            }
        }
        self.end();
    }

    fn handle_token(&mut self, token: Token) {
        match token {
            Token::Refused => self.read_refused(),
            Token::Datagrams => self.take_datagrams(),
            Token::DnsListener => self.accept_dns_client(),
            Token::Resolver => self.handle_resolved(),
            Token::Listener(listen_address) => self.accept(listen_address),
            Token::Connection(number) => self.relay(number),
            Token::DnsClient(number) => self.read_dns_client(number),
            Token::Closing => {}
        }
    }

    /// Records the bytes of connections that are still open.
    fn end(mut self) {
        for (_, connection) in self.connections.drain() {
            let (bytes_in, bytes_out) = connection.carried();
            self.audit.bytes(&connection.target, bytes_in, bytes_out);
            connection.reset();
        }
    }

    fn watch_own(&mut self) -> Result<(), Errno> {
        let mut token = |token| {
            self.next_token += 1;
            self.tokens.insert(self.next_token, token);
            EventData::new_u64(self.next_token)
        };
        let refused = self.refused.as_ref().ok_or(Errno::INVAL)?;
        for (fd, data) in [
            (self.closing.as_fd(), token(Token::Closing)),
            (refused.as_fd(), token(Token::Refused)),
            (self.datagrams.as_fd(), token(Token::Datagrams)),
            (self.dns_listener.as_fd(), token(Token::DnsListener)),
            (self.resolver_events.as_fd(), token(Token::Resolver)),
        ] {
            epoll::add(&self.poll, fd, data, EventFlags::IN)?;
        }
        Ok(())
    }

    fn new_token(&mut self, token: impl FnOnce(u64) -> Token) -> u64 {
        self.next_token += 1;
        self.tokens.insert(self.next_token, token(self.next_token));
        self.next_token
    }

    /// Polls new listeners.
    fn watch_listeners(&mut self) {
        let new: Vec<ListenAddress> = self
            .listeners
            .iter()
            .map(|(listen_address, _)| *listen_address)
            .filter(|listen_address| !self.listener_tokens.contains_key(listen_address))
            .collect();
        for listen_address in new {
            let token = self.new_token(|_| Token::Listener(listen_address));
            self.listener_tokens.insert(listen_address, token);
            if let Some(listener) = self.listeners.get(listen_address) {
                let data = EventData::new_u64(token);
                let _ = epoll::add(&self.poll, &listener.socket, data, EventFlags::IN);
            }
        }
    }

    fn handle_tick(&mut self, now: Instant) {
        self.listeners.close_old(now);
        let (listeners, tokens) = (&self.listeners, &mut self.tokens);
        self.listener_tokens.retain(|listen_address, token| {
            let is_open = listeners.get(*listen_address).is_some();
            if !is_open {
                tokens.remove(token);
            }
            is_open
        });
        self.dns_cache.retain(|_, (until, _)| now < *until);
        let late: Vec<u64> = self
            .connections
            .iter()
            .filter(|(_, connection)| connection.is_late(now))
            .map(|(number, _)| *number)
            .collect();
        for number in late {
            self.give_up(number, Decision::Failed, "it did not answer in time".to_owned());
        }
    }

    /// Records what the kernel refused. Accepted connections are recorded elsewhere.
    fn read_refused(&mut self) {
        let mut packet = [0; 256];
        for _ in 0..256 {
            let Some(refused) = &self.refused else { return };
            let Ok((read, _)) = recv(refused, &mut packet[..], RecvFlags::DONTWAIT) else { return };
            self.refused_packets += 1;
            if self.refused_packets > MAX_PACKETS {
                // A flood: reading it costs CPU time that no limit of the program covers.
                self.audit.mark_truncated();
                self.refused = None;
                return;
            }
            if let Some(attempt) = refused::parse(&packet[..read]) {
                self.record_refused(attempt);
            }
        }
    }

    fn record_refused(&self, attempt: RefusedPacket) {
        let RefusedPacket { transport, address, port } = attempt;
        let is_own = address.is_loopback() || address.is_unspecified();
        let is_answered = transport == Transport::Tcp && self.listeners.answers(address, port);
        if is_own || is_answered {
            return;
        }
        let reason = match transport {
            Transport::Tcp => "nothing allows this address and port",
            Transport::Udp => "no datagrams leave the sandbox",
        };
        let host = self.name_of(address).unwrap_or_else(|| address.to_string());
        self.audit.connection(&Target {
            host,
            address,
            port,
            transport,
            decision: Decision::Refused,
            reason: Some(reason.to_owned()),
        });
    }

    /// The name that last resolved to an address.
    fn name_of(&self, address: IpAddr) -> Option<String> {
        let mut listeners = self
            .listeners
            .iter()
            .filter(|(listen_address, _)| listen_address.address == Some(address));
        listeners.find_map(|(_, listener)| listener.name.clone())
    }

    fn accept(&mut self, listen_address: ListenAddress) {
        for _ in 0..64 {
            let Some(listener) = self.listeners.get(listen_address) else { return };
            let accepted =
                rustix::net::accept_with(&listener.socket, rustix::net::SocketFlags::CLOEXEC);
            let inside = match accepted {
                Ok(inside) => inside,
                Err(Errno::AGAIN | Errno::INTR | Errno::CONNABORTED) => return,
                Err(_) => return std::thread::sleep(ACCEPT_RETRY_DELAY),
            };
            let name = listener.name.clone();
            let inside = TcpStream::from(inside);
            // The local address is the one that the program connected to.
            let Ok(wanted) = inside.local_addr() else { continue };
            let address = wanted.ip().to_canonical();
            self.open_connection(inside, address, listen_address, name);
        }
    }

    /// Connects to the target if it is allowed.
    fn open_connection(
        &mut self,
        inside: TcpStream,
        address: IpAddr,
        listen_address: ListenAddress,
        name: Option<String>,
    ) {
        self.opened += 1;
        let limits = self.allow.limits();
        let is_named = self.allow.names_address(address, listen_address.port);
        let refusal = if name.is_none() && !is_named {
            Some("nothing allows this address and port".to_owned())
        } else if let Some(what) = special_address(address).filter(|_| !self.allow.covers(address))
        {
            Some(format!("it is {what}"))
        } else if self.opened > limits.connections {
            Some("there were too many connections".to_owned())
        } else if self.connections.len() >= limits.at_once {
            Some("there are too many connections at once".to_owned())
        } else {
            None
        };
        let target = Target {
            host: name.unwrap_or_else(|| address.to_string()),
            address,
            port: listen_address.port,
            transport: Transport::Tcp,
            decision: if refusal.is_some() { Decision::Refused } else { Decision::Allowed },
            reason: refusal,
        };
        if target.decision == Decision::Refused {
            self.audit.connection(&target);
            connections::reset(&inside);
            return;
        }
        match Connection::begin(inside, target.clone()) {
            Ok(connection) => {
                let number = self.new_token(Token::Connection);
                let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
                let data = EventData::new_u64(number);
                let watched = connection
                    .ends()
                    .iter()
                    .try_for_each(|end| epoll::add(&self.poll, end, data, flags));
                self.audit.connection(&connection.target);
                self.connections.insert(number, connection);
                match watched {
                    Ok(()) => self.relay(number),
                    Err(error) => self.give_up(number, Decision::Failed, error.to_string()),
                }
            }
            Err((inside, error)) => {
                let reason = Some(error.to_string());
                self.audit.connection(&Target { decision: Decision::Failed, reason, ..target });
                connections::reset(&inside);
            }
        }
    }

    fn relay(&mut self, number: u64) {
        let Some(connection) = self.connections.get_mut(&number) else { return };
        match connection.relay(&mut self.buffer, &mut self.remaining) {
            State::Waits => {}
            State::HasMore => self.ready.push(number),
            State::Over => self.close_connection(number, false),
            State::Broken => self.close_connection(number, true),
            State::Unreachable(reason) => self.give_up(number, Decision::Failed, reason),
            State::LimitReached => {
                let reason = "there were too many bytes".to_owned();
                self.give_up(number, Decision::Refused, reason);
            }
        }
    }

    /// Closes a connection that failed or exceeded a limit, and records that.
    fn give_up(&mut self, number: u64, decision: Decision, reason: String) {
        if let Some(connection) = self.connections.get(&number) {
            let target = Target { decision, reason: Some(reason), ..connection.target.clone() };
            self.audit.connection(&target);
        }
        self.close_connection(number, true);
    }

    fn close_connection(&mut self, number: u64, broken: bool) {
        self.tokens.remove(&number);
        let Some(connection) = self.connections.remove(&number) else { return };
        let (bytes_in, bytes_out) = connection.carried();
        self.audit.bytes(&connection.target, bytes_in, bytes_out);
        self.remaining.pipes += connection.pipes();
        if broken {
            connection.reset();
        }
    }
}
