//! The one way out of a sandbox that a plan can have: an HTTP proxy that reaches named places only.
//!
//! The listening socket was made by init inside the sandbox's network, where it is all there is to
//! connect to. What is accepted from it is served here, on the host's network: a request for a tunnel or
//! a plain request (`head`) to a place on the list is connected (`route`) and relayed (`relay`);
//! everything else is answered 403 at once. Bytes inside a tunnel are not looked at.
//!
//! Everything is bounded: the number of threads, which is that of connections, the size of a request's
//! head, the time until it is there, and silence. All of it ends with the stage.

mod closing;
mod head;
mod relay;
mod route;

use std::collections::BTreeSet;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::event::PollFlags;
use rustix::io::Errno;
use sandbox_core::Gate;

use closing::Closing;
use head::Head;

/// Connections at one time; more wait in the kernel's queue. Package managers open about a dozen.
const THREADS: usize = 24;
/// Looking up a name is the deepest these threads go.
const STACK: usize = 512 * 1024;
/// No connection in a whole stage is this late: it only keeps a wait from being without end.
const STAGE_TIME: Duration = Duration::from_hours(24);

/// So many different places are told of; a program inside can ask for more than anyone wants to read.
const MAX_REPORTED: usize = 20;

/// A gate in use. Dropping it closes every connection and waits for its threads.
pub(crate) struct OpenGate {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

struct Shared {
    gate: Gate,
    listener: TcpListener,
    closing: Closing,
    turned_away: Mutex<BTreeSet<String>>,
}

impl OpenGate {
    /// Serves whoever comes out of the sandbox through this listener.
    pub(crate) fn open(listener: OwnedFd, gate: Gate) -> Result<Self, Errno> {
        let shared = Arc::new(Shared {
            gate,
            listener: TcpListener::from(listener),
            closing: Closing::new()?,
            turned_away: Mutex::default(),
        });
        let mut open = Self { shared, threads: Vec::new() };
        for _ in 0..THREADS {
            let shared = Arc::clone(&open.shared);
            let builder = std::thread::Builder::new().name("sandbox-gate".into()).stack_size(STACK);
            let thread = builder.spawn(move || shared.accept());
            open.threads.push(thread.map_err(|_| Errno::AGAIN)?);
        }
        Ok(open)
    }

    /// Ends everything, and tells what could not or must not be reached.
    pub(crate) fn close(self) -> Vec<String> {
        let shared = Arc::clone(&self.shared);
        drop(self);
        let mut told = shared.turned_away.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *told).into_iter().collect()
    }
}

impl Drop for OpenGate {
    fn drop(&mut self) {
        self.shared.closing.close();
        for thread in self.threads.drain(..) {
            // A thread that panicked has closed its connection too.
            let _ = thread.join();
        }
    }
}

impl Shared {
    /// Serves one connection after the other until the gate closes.
    fn accept(&self) {
        while self.closing.wait(&[(self.listener.as_fd(), PollFlags::IN)], STAGE_TIME).is_ok() {
            // Every thread was woken, and one of them was first. A connection that ended while it
            // waited is none.
            if let Ok((client, _)) = self.listener.accept()
                && client.set_nonblocking(true).is_ok()
            {
                // How a connection failed is told to the client, as far as it still listens.
                let _ = self.serve(&client);
            }
        }
    }

    fn serve(&self, client: &TcpStream) -> std::io::Result<()> {
        let closing = &self.closing;
        let (head, rest) = match Head::receive(client, closing)? {
            Ok(received) => received,
            Err(reason) => return answer(client, closing, "400 Bad Request", reason),
        };
        let place = head.place();
        if !self.gate.places.contains(place) {
            let reason = format!("{place} is not to be reached from this sandbox");
            return self.turn_away(client, "403 Forbidden", reason);
        }
        match route::connect(&head, &rest, &self.gate, closing) {
            Ok(server) => {
                if head.is_tunnel() {
                    relay::send(client, closing, b"HTTP/1.1 200 Connection established\r\n\r\n")?;
                    // A client may speak before it hears that the tunnel stands.
                    relay::send(&server, closing, &rest)?;
                }
                relay::both_ways(client, &server, closing)
            }
            Err(error) => {
                let reason = format!("{place} could not be reached: {error}");
                self.turn_away(client, "502 Bad Gateway", reason)
            }
        }
    }

    fn turn_away(&self, client: &TcpStream, status: &str, reason: String) -> std::io::Result<()> {
        let answered = answer(client, &self.closing, status, &reason);
        let mut told = self.turned_away.lock().unwrap_or_else(PoisonError::into_inner);
        if told.len() < MAX_REPORTED {
            told.insert(reason);
        }
        answered
    }
}

fn answer(
    client: &TcpStream,
    closing: &Closing,
    status: &str,
    reason: &str,
) -> std::io::Result<()> {
    let text = format!(
        "HTTP/1.1 {status}\r\nConnection: close\r\nContent-Type: text/plain\r\n\
         Content-Length: {}\r\n\r\n{reason}\n",
        reason.len() + 1
    );
    relay::send(client, closing, text.as_bytes())
}

#[cfg(test)]
mod tests;
