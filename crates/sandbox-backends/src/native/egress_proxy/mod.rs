//! The egress proxy: an HTTP proxy through which a sandbox reaches listed hosts only.
//!
//! Init creates the listening socket inside the sandbox's network, where it is the only thing to
//! connect to. Connections to it are served here, on the host's network: a tunnel or a plain
//! request (`request_head`) to a listed host is connected (`upstream`) and relayed (`relay`);
//! everything else gets status 403. The content of tunnels is not inspected.
//!
//! The number of connections, the size of request heads and all waiting times are bounded, and
//! everything ends with the stage (`stop`).

mod relay;
mod request_head;
mod stop;
mod upstream;

use std::collections::BTreeSet;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::event::PollFlags;
use rustix::io::Errno;
use sandbox_core::EgressProxy;

use request_head::RequestHead;
use stop::StopSignal;

/// Maximum number of connections; further ones wait in the kernel's queue. Package managers open
/// about a dozen.
const MAX_THREADS: usize = 24;
/// Resolving a name needs the deepest stack.
const STACK: usize = 512 * 1024;
/// Longer than any stage: only bounds the wait.
const ACCEPT_TIMEOUT: Duration = Duration::from_hours(24);

/// Maximum number of refusals that are reported.
const MAX_REPORTED: usize = 20;

/// A running proxy. Dropping it closes every connection and joins its threads.
pub(crate) struct RunningProxy {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

struct Shared {
    egress_proxy: EgressProxy,
    listener: TcpListener,
    stop: StopSignal,
    proxy_refusals: Mutex<BTreeSet<String>>,
}

impl RunningProxy {
    /// Starts to serve connections from this listener.
    pub(crate) fn open(listener: OwnedFd, egress_proxy: EgressProxy) -> Result<Self, Errno> {
        let shared = Arc::new(Shared {
            egress_proxy,
            listener: TcpListener::from(listener),
            stop: StopSignal::new()?,
            proxy_refusals: Mutex::default(),
        });
        let mut open = Self { shared, threads: Vec::new() };
        for _ in 0..MAX_THREADS {
            let shared = Arc::clone(&open.shared);
            let builder =
                std::thread::Builder::new().name("sandbox-proxy".into()).stack_size(STACK);
            let thread = builder.spawn(move || shared.accept());
            open.threads.push(thread.map_err(|_| Errno::AGAIN)?);
        }
        Ok(open)
    }

    /// Stops the proxy; returns the requests that it refused or could not serve.
    pub(crate) fn close(self) -> Vec<String> {
        let shared = Arc::clone(&self.shared);
        drop(self);
        let mut refusals = shared.proxy_refusals.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *refusals).into_iter().collect()
    }
}

impl Drop for RunningProxy {
    fn drop(&mut self) {
        self.shared.stop.close();
        for thread in self.threads.drain(..) {
            // A thread that panicked has closed its connection.
            let _ = thread.join();
        }
    }
}

impl Shared {
    /// Serves connections one after another until the proxy stops.
    fn accept(&self) {
        while self.stop.wait(&[(self.listener.as_fd(), PollFlags::IN)], ACCEPT_TIMEOUT).is_ok() {
            // All threads are woken, and only one accepts the connection.
            if let Ok((client, _)) = self.listener.accept()
                && client.set_nonblocking(true).is_ok()
            {
                // Errors are reported to the client only.
                let _ = self.serve(&client);
            }
        }
    }

    fn serve(&self, client: &TcpStream) -> std::io::Result<()> {
        let stop = &self.stop;
        let (head, rest) = match RequestHead::receive(client, stop)? {
            Ok(received) => received,
            Err(reason) => return answer(client, stop, "400 Bad Request", reason),
        };
        let place = head.place();
        if !self.egress_proxy.places.contains(place) {
            let reason = format!("{place} is not an allowed destination of this sandbox");
            return self.refuse(client, "403 Forbidden", reason);
        }
        match upstream::connect(&head, &rest, &self.egress_proxy, stop) {
            Ok(server) => {
                if head.is_tunnel() {
                    relay::send(client, stop, b"HTTP/1.1 200 Connection established\r\n\r\n")?;
                    // A client may send data before it gets the answer.
                    relay::send(&server, stop, &rest)?;
                }
                relay::both_ways(client, &server, stop)
            }
            Err(error) => {
                let reason = format!("{place} could not be reached: {error}");
                self.refuse(client, "502 Bad Gateway", reason)
            }
        }
    }

    fn refuse(&self, client: &TcpStream, status: &str, reason: String) -> std::io::Result<()> {
        let answered = answer(client, &self.stop, status, &reason);
        let mut refusals = self.proxy_refusals.lock().unwrap_or_else(PoisonError::into_inner);
        if refusals.len() < MAX_REPORTED {
            refusals.insert(reason);
        }
        answered
    }
}

fn answer(
    client: &TcpStream,
    stop: &StopSignal,
    status: &str,
    reason: &str,
) -> std::io::Result<()> {
    let text = format!(
        "HTTP/1.1 {status}\r\nConnection: close\r\nContent-Type: text/plain\r\n\
         Content-Length: {}\r\n\r\n{reason}\n",
        reason.len() + 1
    );
    relay::send(client, stop, text.as_bytes())
}

#[cfg(test)]
mod tests;
