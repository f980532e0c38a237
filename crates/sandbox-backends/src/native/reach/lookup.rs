//! Names looked up as the host looks them up: its hosts file, its name servers, its order. That call blocks, so threads of
//! its own make it.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::os::fd::OwnedFd;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};

/// Lookups at one time; more wait.
const THREADS: usize = 4;

/// Threads that look names up. They end by themselves when nobody wants any more.
pub(super) struct Lookups {
    questions: Sender<String>,
    waiting: Arc<Mutex<Receiver<String>>>,
    answers: Receiver<Found>,
    answer: Sender<Found>,
    /// Readable when there are answers.
    news: Arc<OwnedFd>,
    threads: usize,
}

/// What came of a lookup.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) name: String,
    /// Addresses that this host could send to; or why there are none.
    pub(super) addresses: Result<Vec<IpAddr>, String>,
}

impl Lookups {
    pub(super) fn new(news: Arc<OwnedFd>) -> Self {
        let ((questions, waiting), (answer, answers)) = (mpsc::channel(), mpsc::channel());
        let waiting = Arc::new(Mutex::new(waiting));
        Self { questions, waiting, answers, answer, news, threads: 0 }
    }

    /// Has a name looked up.
    pub(super) fn begin(&mut self, name: String) {
        if self.threads < THREADS {
            let (waiting, answer) = (Arc::clone(&self.waiting), self.answer.clone());
            let news = Arc::clone(&self.news);
            let builder = std::thread::Builder::new().name("sandbox-lookup".into());
            if builder.spawn(move || work(&waiting, &answer, &news)).is_ok() {
                self.threads += 1;
            }
        }
        // Somebody receives: this value has the other end itself.
        let _ = self.questions.send(name);
    }

    /// What was found since the last time.
    pub(super) fn finished(&self) -> Vec<Found> {
        let mut counter = [0; 8];
        let _ = rustix::io::read(&*self.news, &mut counter);
        self.answers.try_iter().collect()
    }
}

fn work(waiting: &Mutex<Receiver<String>>, answer: &Sender<Found>, news: &OwnedFd) {
    loop {
        let next = waiting.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(name) = next else { return };
        let addresses = look_up(&name);
        if answer.send(Found { name, addresses }).is_err() {
            return;
        }
        // A full counter is as good as one more.
        let _ = rustix::io::write(news, &1_u64.to_ne_bytes());
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

/// Whether this host could send anything there: nothing is sent. Without version six of the network a name has addresses of
/// it all the same, and a program that is told of one takes it first.
fn has_route(address: IpAddr) -> bool {
    let own: SocketAddr = match address {
        IpAddr::V4(_) => ([0, 0, 0, 0], 0).into(),
        IpAddr::V6(_) => ([0_u16; 8], 0).into(),
    };
    UdpSocket::bind(own).is_ok_and(|socket| socket.connect((address, 9)).is_ok())
}
