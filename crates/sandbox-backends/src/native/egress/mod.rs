//! Network access through an allow-list: the supervisor's side of a network in which every address
//! is local and only the listeners opened here accept connections.
//!
//! One thread serves everything (`server`). Allowed DNS queries (`dns`) are resolved like on the
//! host (`resolver`). For each address in an answer, listeners are opened inside the sandbox on the
//! allowed ports (`listeners`) for as long as the answer is valid. A connection to a listener is
//! relayed to the real address (`connections`). The kernel refuses all other connections; a packet
//! socket sees them (`refused`). Every decision is recorded (`audit`).

mod audit;
mod connections;
mod dns;
mod listeners;
mod refused;
mod resolver;
mod server;

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::thread::JoinHandle;

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;
use sandbox_core::{Allowlist, NetworkEvent, NetworkReport};
use sandbox_linux::egress_network::{ALL_SOCKETS, FIRST_SOCKETS};

use audit::AuditLog;
use server::Server;

/// A network in use. Dropping it closes every connection.
pub(crate) struct OpenNetwork {
    audit: Arc<AuditLog>,
    closing: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

/// Sockets that init sends, until all have arrived.
#[derive(Default)]
pub(crate) struct NetworkSockets(Vec<OwnedFd>);

impl NetworkSockets {
    /// Adds some of the sockets; returns all when they are complete.
    pub(crate) fn take(&mut self, some: Vec<OwnedFd>) -> Option<Self> {
        self.0.extend(some);
        (self.0.len() >= ALL_SOCKETS).then(|| std::mem::take(self))
    }
}

impl OpenNetwork {
    /// Starts to serve the sandbox's network.
    pub(crate) fn open(ends: NetworkSockets, allow: Arc<Allowlist>) -> Result<Self, Errno> {
        let mut first = ends.0;
        let spare = first.split_off(FIRST_SOCKETS);
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let closing = Arc::new(eventfd(0, flags)?);
        let audit = Arc::new(AuditLog::new(eventfd(0, flags)?));
        let server = Server::new(first, spare, allow, Arc::clone(&audit), Arc::clone(&closing))?;
        let builder = std::thread::Builder::new().name("sandbox-egress".into());
        let thread = builder.spawn(move || server.serve()).map_err(|_| Errno::AGAIN)?;
        Ok(Self { audit, closing, thread: Some(thread) })
    }

    /// Readable when there are events.
    pub(crate) fn events_ready(&self) -> BorrowedFd<'_> {
        self.audit.events_ready.as_fd()
    }

    /// Decisions since the last call.
    pub(crate) fn take_events(&self) -> Vec<NetworkEvent> {
        self.audit.take_events()
    }

    /// Closes the network; returns the remaining events and the report.
    pub(crate) fn close(self) -> (Vec<NetworkEvent>, NetworkReport) {
        let audit = Arc::clone(&self.audit);
        drop(self);
        (audit.take_events(), audit.report())
    }
}

impl Drop for OpenNetwork {
    fn drop(&mut self) {
        // The counter cannot overflow: it is written once.
        let _ = rustix::io::write(&*self.closing, &1_u64.to_ne_bytes());
        // If the thread panicked, its connections are closed too.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
