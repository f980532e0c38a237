//! The sign that ends every wait of a gate's threads.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;

/// Until it is closed, threads wait for what they wait for; then for nothing any more.
pub(super) struct Closing(OwnedFd);

impl Closing {
    pub(super) fn new() -> Result<Self, Errno> {
        eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map(Self)
    }

    /// Ends every wait, present and future: nobody ever takes the sign back.
    pub(super) fn close(&self) {
        // The counter cannot be full: it is written once.
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }

    /// Waits until one of these is ready, and says for each what it is ready for.
    pub(super) fn wait(
        &self,
        watched: &[(BorrowedFd<'_>, PollFlags)],
        patience: Duration,
    ) -> io::Result<Vec<PollFlags>> {
        let sign = PollFd::from_borrowed_fd(self.0.as_fd(), PollFlags::IN);
        let mut descriptors = vec![sign];
        descriptors.extend(watched.iter().map(|(fd, flags)| PollFd::from_borrowed_fd(*fd, *flags)));
        let timeout = Timespec {
            tv_sec: patience.as_secs().cast_signed(),
            tv_nsec: patience.subsec_nanos().into(),
        };
        let ready = loop {
            match poll(&mut descriptors, Some(&timeout)) {
                Err(Errno::INTR) => {}
                other => break other?,
            }
        };
        if !descriptors[0].revents().is_empty() {
            return Err(io::Error::new(io::ErrorKind::ConnectionAborted, "the gate is closed"));
        }
        if ready == 0 {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "nothing was heard in time"));
        }
        Ok(descriptors[1..].iter().map(PollFd::revents).collect())
    }
}
