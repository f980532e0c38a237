//! Stops the threads of a proxy.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;

/// Interrupts every wait of the proxy's threads.
pub(super) struct StopSignal(OwnedFd);

impl StopSignal {
    pub(super) fn new() -> Result<Self, Errno> {
        eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map(Self)
    }

    /// Interrupts every wait, present and future.
    pub(super) fn close(&self) {
        // The counter cannot overflow: it is written once.
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }

    /// Waits until one of the descriptors is ready; returns the events of each.
    pub(super) fn wait(
        &self,
        watched: &[(BorrowedFd<'_>, PollFlags)],
        timeout: Duration,
    ) -> io::Result<Vec<PollFlags>> {
        let sign = PollFd::from_borrowed_fd(self.0.as_fd(), PollFlags::IN);
        let mut descriptors = vec![sign];
        descriptors.extend(watched.iter().map(|(fd, flags)| PollFd::from_borrowed_fd(*fd, *flags)));
        let timeout = Timespec {
            tv_sec: timeout.as_secs().cast_signed(),
            tv_nsec: timeout.subsec_nanos().into(),
        };
        let ready = loop {
            match poll(&mut descriptors, Some(&timeout)) {
                Err(Errno::INTR) => {}
                other => break other?,
            }
        };
        if !descriptors[0].revents().is_empty() {
            return Err(io::Error::new(
                io::ErrorKind::ConnectionAborted,
                "the egress proxy is closed",
            ));
        }
        if ready == 0 {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "no data within the timeout"));
        }
        Ok(descriptors[1..].iter().map(PollFd::revents).collect())
    }
}
