//! What a program reaches through an allow-list: the supervisor's side of a network in which every address is at hand and
//! nothing answers but what is opened here.
//!
//! One thread serves everything. A question for a name that is allowed (`questions`) is looked up as the host looks names
//! up (`lookup`); for each address that is then told, a listener is opened inside at that address and the allowed ports
//! (`doors`), and stays as long as the answer counts. Who connects there is connected to the real address out here, and
//! bytes are carried (`links`). Everything else was refused by the kernel when it came; one socket heard of it (`ear`).
//! Every decision is written down (`journal`).

mod doors;
mod ear;
mod journal;
mod links;
mod lookup;
mod questions;
mod serve;

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::thread::JoinHandle;

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;
use sandbox_core::{Allowlist, NetworkEvent, NetworkReport};
use sandbox_linux::way_out::{ALL, FIRST};

use journal::Journal;
use serve::Server;

/// A network in use. Dropping it closes every connection.
pub(crate) struct OpenNetwork {
    journal: Arc<Journal>,
    closing: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

/// The descriptors that come from inside, until all of them are there.
#[derive(Default)]
pub(crate) struct Ends(Vec<OwnedFd>);

impl Ends {
    /// Takes some of them, and gives all when there are no more to come.
    pub(crate) fn take(&mut self, some: Vec<OwnedFd>) -> Option<Self> {
        self.0.extend(some);
        (self.0.len() >= ALL).then(|| std::mem::take(self))
    }
}

impl OpenNetwork {
    /// Serves whoever comes out of the sandbox.
    pub(crate) fn open(ends: Ends, allow: Arc<Allowlist>) -> Result<Self, Errno> {
        let mut first = ends.0;
        let spare = first.split_off(FIRST);
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let closing = Arc::new(eventfd(0, flags)?);
        let journal = Arc::new(Journal::new(eventfd(0, flags)?));
        let server = Server::new(first, spare, allow, Arc::clone(&journal), Arc::clone(&closing))?;
        let builder = std::thread::Builder::new().name("sandbox-reach".into());
        let thread = builder.spawn(move || server.serve()).map_err(|_| Errno::AGAIN)?;
        Ok(Self { journal, closing, thread: Some(thread) })
    }

    /// Readable when there is something to tell.
    pub(crate) fn news(&self) -> BorrowedFd<'_> {
        self.journal.news.as_fd()
    }

    /// What was decided since the last time.
    pub(crate) fn take_events(&self) -> Vec<NetworkEvent> {
        self.journal.take_events()
    }

    /// Ends everything, and tells all that was decided.
    pub(crate) fn close(self) -> (Vec<NetworkEvent>, NetworkReport) {
        let journal = Arc::clone(&self.journal);
        drop(self);
        (journal.take_events(), journal.report())
    }
}

impl Drop for OpenNetwork {
    fn drop(&mut self) {
        // The counter cannot be full: it is written once.
        let _ = rustix::io::write(&*self.closing, &1_u64.to_ne_bytes());
        // If it broke off, its connections are closed too.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
