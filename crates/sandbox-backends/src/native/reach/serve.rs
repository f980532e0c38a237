//! The one thread that serves a network: doors, links and the ear; questions are in `names`.

mod names;

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

use super::doors::{Doors, Spot};
use super::ear::{self, Attempt};
use super::journal::{Journal, Place};
use super::links::{self, Allowance, BUFFER, Link, State};
use super::lookup::Lookups;
use super::questions::Question;
use names::Asker;

/// Doors and late links are looked at this often.
const ROUND: Duration = Duration::from_secs(1);
/// Pipes at one time: with more there would be much memory of the kernel in them.
const MAX_PIPES: usize = 64;
/// Who waits at a door while this process has no descriptor left is seen again at once, so others get their turn first.
const SHORT_OF_DESCRIPTORS: Duration = Duration::from_millis(10);
/// Packets heard in an execution; after that nobody listens, and the report says so.
const MAX_PACKETS: u64 = 100_000;

/// What something that happened is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token {
    Closing,
    Ear,
    Datagrams,
    Askers,
    Lookups,
    Door(Spot),
    Link(u64),
    Asker(u64),
}

pub(super) struct Server {
    allow: Arc<Allowlist>,
    journal: Arc<Journal>,
    closing: Arc<OwnedFd>,
    poll: OwnedFd,
    tokens: HashMap<u64, Token>,
    next_token: u64,
    ear: Option<OwnedFd>,
    heard: u64,
    datagrams: UdpSocket,
    askers: TcpListener,
    asking: BTreeMap<u64, (TcpStream, Vec<u8>)>,
    lookups: Lookups,
    lookups_news: Arc<OwnedFd>,
    /// Questions that wait for a lookup.
    waiting: Vec<(Asker, Question)>,
    known: BTreeMap<String, (Instant, Result<Vec<IpAddr>, String>)>,
    questions: u64,
    doors: Doors,
    door_tokens: BTreeMap<Spot, u64>,
    links: HashMap<u64, Link>,
    /// Links that could go on at once.
    ready: Vec<u64>,
    connections: u64,
    left: Allowance,
    buffer: Vec<u8>,
}

impl Server {
    pub(super) fn new(
        first: Vec<OwnedFd>,
        spare: Vec<OwnedFd>,
        allow: Arc<Allowlist>,
        journal: Arc<Journal>,
        closing: Arc<OwnedFd>,
    ) -> Result<Self, Errno> {
        let [ear, datagrams, askers] = <[OwnedFd; 3]>::try_from(first).map_err(|_| Errno::INVAL)?;
        let news = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let limits = *allow.limits();
        let mut server = Self {
            doors: Doors::new(spare, &allow)?,
            allow,
            journal,
            closing,
            poll: epoll::create(CreateFlags::CLOEXEC)?,
            tokens: HashMap::new(),
            next_token: 0,
            ear: Some(ear),
            heard: 0,
            datagrams: UdpSocket::from(datagrams),
            askers: TcpListener::from(askers),
            asking: BTreeMap::new(),
            lookups: Lookups::new(Arc::clone(&news)),
            lookups_news: news,
            waiting: Vec::new(),
            known: BTreeMap::new(),
            questions: 0,
            door_tokens: BTreeMap::new(),
            links: HashMap::new(),
            ready: Vec::new(),
            connections: 0,
            left: Allowance {
                bytes_in: limits.bytes_in,
                bytes_out: limits.bytes_out,
                pipes: MAX_PIPES,
            },
            buffer: vec![0; BUFFER],
        };
        server.watch_own()?;
        server.watch_doors();
        Ok(server)
    }

    /// Serves until it is to end.
    pub(super) fn serve(mut self) {
        let mut next_round = Instant::now() + ROUND;
        let mut events = Vec::with_capacity(256);
        loop {
            let left = if self.ready.is_empty() {
                next_round.saturating_duration_since(Instant::now())
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
                self.go_on(number);
            }
            let tokens: Vec<u64> = events.iter().map(|event| event.data.u64()).collect();
            for token in tokens {
                match self.tokens.get(&token).copied() {
                    Some(Token::Closing) => return self.end(),
                    Some(token) => self.handle_token(token),
                    // It was closed by something that happened at the same time.
                    None => {}
                }
            }
            let now = Instant::now();
            if next_round <= now {
                next_round = now + ROUND;
                self.make_a_round(now);
            }
        }
        self.end();
    }

    fn handle_token(&mut self, token: Token) {
        match token {
            Token::Ear => self.hear(),
            Token::Datagrams => self.take_datagrams(),
            Token::Askers => self.accept_asker(),
            Token::Lookups => self.take_found(),
            Token::Door(spot) => self.accept(spot),
            Token::Link(number) => self.go_on(number),
            Token::Asker(number) => self.read_asker(number),
            Token::Closing => {}
        }
    }

    /// What went through links that are open still counts.
    fn end(mut self) {
        for (_, link) in self.links.drain() {
            let (bytes_in, bytes_out) = link.carried();
            self.journal.bytes(&link.place, bytes_in, bytes_out);
            link.reset();
        }
    }

    fn watch_own(&mut self) -> Result<(), Errno> {
        let mut token = |token| {
            self.next_token += 1;
            self.tokens.insert(self.next_token, token);
            EventData::new_u64(self.next_token)
        };
        let ear = self.ear.as_ref().ok_or(Errno::INVAL)?;
        for (fd, data) in [
            (self.closing.as_fd(), token(Token::Closing)),
            (ear.as_fd(), token(Token::Ear)),
            (self.datagrams.as_fd(), token(Token::Datagrams)),
            (self.askers.as_fd(), token(Token::Askers)),
            (self.lookups_news.as_fd(), token(Token::Lookups)),
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

    /// Listens to doors that were opened since.
    fn watch_doors(&mut self) {
        let new: Vec<Spot> = self
            .doors
            .iter()
            .map(|(spot, _)| *spot)
            .filter(|spot| !self.door_tokens.contains_key(spot))
            .collect();
        for spot in new {
            let token = self.new_token(|_| Token::Door(spot));
            self.door_tokens.insert(spot, token);
            if let Some(door) = self.doors.get(spot) {
                let data = EventData::new_u64(token);
                let _ = epoll::add(&self.poll, &door.listener, data, EventFlags::IN);
            }
        }
    }

    fn make_a_round(&mut self, now: Instant) {
        self.doors.close_old(now);
        let (doors, tokens) = (&self.doors, &mut self.tokens);
        self.door_tokens.retain(|spot, token| {
            let is_open = doors.get(*spot).is_some();
            if !is_open {
                tokens.remove(token);
            }
            is_open
        });
        self.known.retain(|_, (until, _)| now < *until);
        let late: Vec<u64> = self
            .links
            .iter()
            .filter(|(_, link)| link.is_late(now))
            .map(|(number, _)| *number)
            .collect();
        for number in late {
            self.give_up(number, Decision::Failed, "it did not answer in time".to_owned());
        }
    }

    /// Writes down what the kernel refused. What a door accepts is written down there.
    fn hear(&mut self) {
        let mut packet = [0; 256];
        for _ in 0..256 {
            let Some(ear) = &self.ear else { return };
            let Ok((read, _)) = recv(ear, &mut packet[..], RecvFlags::DONTWAIT) else { return };
            self.heard += 1;
            if self.heard > MAX_PACKETS {
                // Somebody floods us, and listening costs time that no limit of the program's covers.
                self.journal.lost_some();
                self.ear = None;
                return;
            }
            if let Some(attempt) = ear::understand(&packet[..read]) {
                self.write_down(attempt);
            }
        }
    }

    fn write_down(&self, attempt: Attempt) {
        let Attempt { transport, address, port } = attempt;
        let is_own = address.is_loopback() || address.is_unspecified();
        let is_answered = transport == Transport::Tcp && self.doors.answers(address, port);
        if is_own || is_answered {
            return;
        }
        let reason = match transport {
            Transport::Tcp => "nothing allows this address and port",
            Transport::Udp => "no datagrams leave the sandbox",
        };
        let host = self.name_of(address).unwrap_or_else(|| address.to_string());
        self.journal.connection(&Place {
            host,
            address,
            port,
            transport,
            decision: Decision::Refused,
            reason: Some(reason.to_owned()),
        });
    }

    /// The name that an address was last told for.
    fn name_of(&self, address: IpAddr) -> Option<String> {
        let mut doors = self.doors.iter().filter(|(spot, _)| spot.address == Some(address));
        doors.find_map(|(_, door)| door.name.clone())
    }

    fn accept(&mut self, spot: Spot) {
        for _ in 0..64 {
            let Some(door) = self.doors.get(spot) else { return };
            let accepted =
                rustix::net::accept_with(&door.listener, rustix::net::SocketFlags::CLOEXEC);
            let inside = match accepted {
                Ok(inside) => inside,
                Err(Errno::AGAIN | Errno::INTR | Errno::CONNABORTED) => return,
                Err(_) => return std::thread::sleep(SHORT_OF_DESCRIPTORS),
            };
            let name = door.name.clone();
            let inside = TcpStream::from(inside);
            // What it was connected to is its own address in there.
            let Ok(wanted) = inside.local_addr() else { continue };
            let address = wanted.ip().to_canonical();
            self.let_out(inside, address, spot, name);
        }
    }

    /// Connects to where somebody wants to get, if that is allowed.
    fn let_out(&mut self, inside: TcpStream, address: IpAddr, spot: Spot, name: Option<String>) {
        self.connections += 1;
        let limits = self.allow.limits();
        let is_named = self.allow.names_address(address, spot.port);
        let refusal = if name.is_none() && !is_named {
            Some("nothing allows this address and port".to_owned())
        } else if let Some(what) = special_address(address).filter(|_| !self.allow.covers(address))
        {
            Some(format!("it is {what}"))
        } else if self.connections > limits.connections {
            Some("there were too many connections".to_owned())
        } else if self.links.len() >= limits.at_once {
            Some("there are too many connections at once".to_owned())
        } else {
            None
        };
        let place = Place {
            host: name.unwrap_or_else(|| address.to_string()),
            address,
            port: spot.port,
            transport: Transport::Tcp,
            decision: if refusal.is_some() { Decision::Refused } else { Decision::Allowed },
            reason: refusal,
        };
        if place.decision == Decision::Refused {
            self.journal.connection(&place);
            links::reset(&inside);
            return;
        }
        match Link::begin(inside, place.clone()) {
            Ok(link) => {
                let number = self.new_token(Token::Link);
                let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
                let data = EventData::new_u64(number);
                let watched =
                    link.ends().iter().try_for_each(|end| epoll::add(&self.poll, end, data, flags));
                self.journal.connection(&link.place);
                self.links.insert(number, link);
                match watched {
                    Ok(()) => self.go_on(number),
                    Err(error) => self.give_up(number, Decision::Failed, error.to_string()),
                }
            }
            Err((inside, error)) => {
                let reason = Some(error.to_string());
                self.journal.connection(&Place { decision: Decision::Failed, reason, ..place });
                links::reset(&inside);
            }
        }
    }

    fn go_on(&mut self, number: u64) {
        let Some(link) = self.links.get_mut(&number) else { return };
        match link.go_on(&mut self.buffer, &mut self.left) {
            State::Waits => {}
            State::HasMore => self.ready.push(number),
            State::Over => self.put_away(number, false),
            State::Broken => self.put_away(number, true),
            State::Unreachable(reason) => self.give_up(number, Decision::Failed, reason),
            State::Spent => {
                let reason = "there were too many bytes".to_owned();
                self.give_up(number, Decision::Refused, reason);
            }
        }
    }

    /// Ends a link that never stood or may not go on, and says so.
    fn give_up(&mut self, number: u64, decision: Decision, reason: String) {
        if let Some(link) = self.links.get(&number) {
            let place = Place { decision, reason: Some(reason), ..link.place.clone() };
            self.journal.connection(&place);
        }
        self.put_away(number, true);
    }

    fn put_away(&mut self, number: u64, broken: bool) {
        self.tokens.remove(&number);
        let Some(link) = self.links.remove(&number) else { return };
        let (bytes_in, bytes_out) = link.carried();
        self.journal.bytes(&link.place, bytes_in, bytes_out);
        self.left.pipes += link.pipes();
        if broken {
            link.reset();
        }
    }
}
