//! Connections to the shims of an agent that runs any number of processes. The agent creates a socket for each and says
//! which of its descriptors that is; this process copies it. Nothing inside the container could be
//! connected to from a path or an address.

use std::io;
use std::ops::{Deref, DerefMut};
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::net::sockopt::{socket_domain, socket_type};
use rustix::net::{AddressFamily, Shutdown, SocketType, shutdown};
use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};
use sandbox_protocol::Message as _;
use sandbox_protocol::agent::{AgentEvent, AgentRequest};

use super::channel::{Channel, Received};

/// Maximum time for the agent to open a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// Whether the kernel copies descriptors of other processes.
pub(super) fn can_copy_descriptors() -> bool {
    let copied = pidfd_open(getpid(), PidfdFlags::empty())
        .and_then(|own| pidfd_getfd(&own, own.as_raw_fd(), PidfdGetfdFlags::empty()));
    copied.is_ok()
}

/// A channel to one shim. Dropping it makes the shim kill its program.
pub(super) struct Connection(Channel);

impl Connection {
    /// Asks an agent, whose process this is, for a connection.
    pub(super) fn open(control: &mut Channel, agent: BorrowedFd<'_>) -> io::Result<Self> {
        control.send(&AgentRequest::Connect)?;
        let Received::Message(message) = control.wait(CONNECT_TIMEOUT)? else {
            return Err(io::ErrorKind::UnexpectedEof.into());
        };
        let descriptor = match AgentEvent::decode(&message) {
            Ok(AgentEvent::Connection { descriptor }) => descriptor,
            Ok(AgentEvent::Failed(failure)) => {
                return Err(io::Error::from_raw_os_error(failure.errno));
            }
            _ => return Err(io::ErrorKind::InvalidData.into()),
        };
        let socket = copy_socket(agent, descriptor)?;
        control.send(&AgentRequest::Connected)?;
        Channel::new(socket.try_clone()?, socket).map(Self)
    }

    /// Makes the shim kill its program, and report. Its output can still be received.
    pub(super) fn end_requests(&self) {
        // If it fails, the other end is closed already.
        let _ = shutdown(self.0.fd(), Shutdown::Write);
    }
}

impl Deref for Connection {
    type Target = Channel;

    fn deref(&self) -> &Channel {
        &self.0
    }
}

impl DerefMut for Connection {
    fn deref_mut(&mut self) -> &mut Channel {
        &mut self.0
    }
}

impl Drop for Connection {
    /// A thread that sends input may have a copy of the descriptor.
    fn drop(&mut self) {
        let _ = shutdown(self.0.fd(), Shutdown::Both);
    }
}

/// Copies a socket of the agent. It is not believed that the descriptor is one.
fn copy_socket(agent: BorrowedFd<'_>, descriptor: u32) -> io::Result<OwnedFd> {
    let descriptor = i32::try_from(descriptor).map_err(io::Error::other)?;
    let copy = pidfd_getfd(agent, descriptor, PidfdGetfdFlags::empty())?;
    let kind = (socket_domain(copy.as_fd())?, socket_type(copy.as_fd())?);
    if kind == (AddressFamily::UNIX, SocketType::STREAM) {
        Ok(copy)
    } else {
        Err(io::ErrorKind::InvalidData.into())
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn only_a_local_stream_is_taken_from_an_agent() {
        let own = pidfd_open(getpid(), PidfdFlags::empty()).unwrap();
        let (socket, _peer) = UnixStream::pair().unwrap();
        let copy = |fd: i32| copy_socket(own.as_fd(), fd.cast_unsigned());
        assert!(copy(socket.as_raw_fd()).is_ok());
        assert!(copy(File::open("/dev/null").unwrap().as_raw_fd()).is_err());
        let datagrams = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        assert!(copy(datagrams.as_raw_fd()).is_err());
        assert!(copy(-1).is_err());
    }
}
