//! What the supervisor's connections to the launcher, to slots and to zygotes share: the error type
//! and sockets with a timeout.

use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::io::Errno;

use crate::cgroup::CgroupError;
use crate::socket;
use crate::step::{AtStep, StepError};

/// Maximum time for the launcher, an init or a stub to answer or to accept a message. A slot takes
/// milliseconds, but a thousand requested at once on a busy host queue for seconds.
pub(crate) const SLOT_TIMEOUT: Duration = Duration::from_secs(30);

/// Why the launcher or a slot could not be started.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// A step failed, here or in the launcher, an init or a stub.
    #[error(transparent)]
    Step(#[from] StepError),
    /// The cgroup of a slot could not be created.
    #[error("could not make a cgroup")]
    Cgroup(#[from] CgroupError),
    /// The launcher or the slot exited.
    #[error("the launcher is gone")]
    Gone,
}

/// A socket with a timeout, and its other end.
pub(crate) fn connect(step: &str) -> Result<(OwnedFd, OwnedFd), StepError> {
    let (local, peer) = socket::pair().at(step)?;
    socket::set_timeout(local.as_fd(), SLOT_TIMEOUT).at(step)?;
    Ok((local, peer))
}

/// Converts the error of a socket timeout.
pub(crate) fn timed_out(error: Errno) -> Errno {
    if error == Errno::AGAIN { Errno::TIMEDOUT } else { error }
}
