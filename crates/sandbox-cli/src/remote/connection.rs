use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};

use super::clock::{TimedSocket, Timeouts};
#[cfg(feature = "https")]
use super::tls;
use crate::server_url::{InvalidKey, Scheme, ServerUrl};

/// Why no client can be created for a server.
#[derive(Debug, thiserror::Error)]
pub(super) enum ClientError {
    #[error(transparent)]
    Key(#[from] InvalidKey),
    #[cfg(feature = "https")]
    #[error(transparent)]
    Trust(#[from] tls::NothingTrusted),
}

/// The transport of a connection.
#[derive(Clone, Debug)]
pub(super) enum Transport {
    Plain,
    #[cfg(feature = "https")]
    Tls(tls::Trust),
}

impl Transport {
    /// What an address asks for. Only https has this machine's certificates read.
    pub(super) fn to(url: &ServerUrl) -> Result<Self, ClientError> {
        match url.scheme() {
            Scheme::Http => Ok(Self::Plain),
            #[cfg(feature = "https")]
            Scheme::Https => Ok(Self::Tls(tls::Trust::of_this_machine()?)),
            #[cfg(not(feature = "https"))]
            Scheme::Https => unreachable!("no such address is taken by this build"),
        }
    }
}

/// A connection to a server.
#[derive(Debug)]
pub(super) enum Connection {
    Plain(TimedSocket),
    #[cfg(feature = "https")]
    Tls(Box<tls::Stream>),
}

impl Connection {
    pub(super) fn open(
        url: &ServerUrl,
        transport: &Transport,
        timeouts: Timeouts,
    ) -> io::Result<Self> {
        let socket = TimedSocket::new(connect(url, timeouts)?, timeouts)?;
        match transport {
            Transport::Plain => Ok(Self::Plain(socket)),
            #[cfg(feature = "https")]
            Transport::Tls(trust) => {
                let (host, _) = url.host_and_port();
                Ok(Self::Tls(Box::new(trust.handshake(host, socket)?)))
            }
        }
    }

    /// From now on only silence ends it, not the clock.
    pub(super) fn without_deadline(&mut self) {
        match self {
            Self::Plain(socket) => socket.without_deadline(),
            #[cfg(feature = "https")]
            Self::Tls(stream) => stream.get_mut().without_deadline(),
        }
    }
}

fn connect(url: &ServerUrl, timeouts: Timeouts) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in url.host_and_port().to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, timeouts.send) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

impl Read for Connection {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.read(buffer),
            #[cfg(feature = "https")]
            Self::Tls(stream) => stream.read(buffer),
        }
    }
}

impl Write for Connection {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.write(buffer),
            #[cfg(feature = "https")]
            Self::Tls(stream) => stream.write(buffer),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(socket) => socket.flush(),
            #[cfg(feature = "https")]
            Self::Tls(stream) => stream.flush(),
        }
    }
}
