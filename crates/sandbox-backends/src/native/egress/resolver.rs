//! Resolves names like the host does: hosts file, name servers, order. The system call blocks, so
//! threads make it.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::os::fd::OwnedFd;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};

/// Maximum number of parallel lookups; further ones wait.
const MAX_THREADS: usize = 4;

/// Threads that resolve names. They end when the resolver is dropped.
pub(super) struct Resolver {
    requests: Sender<String>,
    waiting: Arc<Mutex<Receiver<String>>>,
    answers: Receiver<Resolved>,
    answer: Sender<Resolved>,
    /// Readable when there are results.
    events_ready: Arc<OwnedFd>,
    threads: usize,
}

/// The result of a lookup.
#[derive(Debug)]
pub(super) struct Resolved {
    pub(super) name: String,
    /// Addresses to which this host has a route; or why there are none.
    pub(super) addresses: Result<Vec<IpAddr>, String>,
}

impl Resolver {
    pub(super) fn new(events_ready: Arc<OwnedFd>) -> Self {
        let ((requests, waiting), (answer, answers)) = (mpsc::channel(), mpsc::channel());
        let waiting = Arc::new(Mutex::new(waiting));
        Self { requests, waiting, answers, answer, events_ready, threads: 0 }
    }

    /// Starts a lookup.
    pub(super) fn begin(&mut self, name: String) {
        if self.threads < MAX_THREADS {
            let (waiting, answer) = (Arc::clone(&self.waiting), self.answer.clone());
            let events_ready = Arc::clone(&self.events_ready);
            let builder = std::thread::Builder::new().name("sandbox-lookup".into());
            if builder.spawn(move || work(&waiting, &answer, &events_ready)).is_ok() {
                self.threads += 1;
            }
        }
        // Cannot fail: this value holds the receiver too.
        let _ = self.requests.send(name);
    }

    /// Results since the last call.
    pub(super) fn finished(&self) -> Vec<Resolved> {
        let mut counter = [0; 8];
        let _ = rustix::io::read(&*self.events_ready, &mut counter);
        self.answers.try_iter().collect()
    }
}

fn work(waiting: &Mutex<Receiver<String>>, answer: &Sender<Resolved>, events_ready: &OwnedFd) {
    loop {
        let next = waiting.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(name) = next else { return };
        let addresses = look_up(&name);
        if answer.send(Resolved { name, addresses }).is_err() {
            return;
        }
        // A counter that is full already wakes the reader.
        let _ = rustix::io::write(events_ready, &1_u64.to_ne_bytes());
    }
}

fn look_up(name: &str) -> Result<Vec<IpAddr>, String> {
    let found = (name, 0).to_socket_addrs().map_err(|error| error.to_string())?;
    let mut addresses: Vec<IpAddr> = Vec::new();
    for address in found.map(|address| address.ip().to_canonical()) {
        if !addresses.contains(&address) && has_route(address) {
            addresses.push(address);
        }
    }
    if addresses.is_empty() {
        return Err("this host cannot reach any of its addresses".to_owned());
    }
    Ok(addresses)
}

/// Whether this host has a route to the address; nothing is sent. Names have IPv6 addresses even if
/// the host has no IPv6, and programs prefer them.
fn has_route(address: IpAddr) -> bool {
    let own: SocketAddr = match address {
        IpAddr::V4(_) => ([0, 0, 0, 0], 0).into(),
        IpAddr::V6(_) => ([0_u16; 8], 0).into(),
    };
    UdpSocket::bind(own).is_ok_and(|socket| socket.connect((address, 9)).is_ok())
}
