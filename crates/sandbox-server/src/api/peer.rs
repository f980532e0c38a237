use std::fmt;
use std::net::SocketAddr;

/// The other end of a connection; an extension of each request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Peer {
    /// A TCP client at this address.
    Remote(SocketAddr),
    /// A process of the server's own user, on the Unix socket.
    SameUser,
}

impl fmt::Display for Peer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Remote(address) => address.fmt(formatter),
            Self::SameUser => formatter.write_str("a process of this user"),
        }
    }
}
