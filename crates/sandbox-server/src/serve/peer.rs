//! The process at the other end of a Unix socket.
//!
//! Its user id is not enough: without root, a program in a sandbox has the server's user id, and a volume can show it the
//! socket. It never has the server's PID namespace, so the namespaces are compared too.

use std::fmt;
use std::io;
use std::path::PathBuf;

use rustix::fs::Uid;
use rustix::net::sockopt::socket_peercred;
use std::os::fd::AsFd;

/// Namespaces that a program in a sandbox cannot share with the server.
const NAMESPACES: [&str; 2] = ["pid", "user"];

/// The user and the namespaces of this process.
pub(super) struct SameUser {
    user: Uid,
    namespaces: [PathBuf; NAMESPACES.len()],
}

/// Why a process is refused.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// It is of another user.
    User(u32),
    /// It has a namespace of its own, or does not let this process look.
    Namespace,
    /// The kernel does not tell which process it is.
    Unknown(io::ErrorKind),
}

impl SameUser {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self { user: rustix::process::geteuid(), namespaces: namespaces("self")? })
    }

    /// Checks the process that has connected.
    ///
    /// The kernel names the process by its id. If it exits before the check and another process of the user gets the
    /// same id, the other one is checked.
    pub(super) fn check(&self, stream: impl AsFd) -> Result<(), Refused> {
        let peer = socket_peercred(stream);
        let peer = peer.map_err(|error| Refused::Unknown(io::Error::from(error).kind()))?;
        if peer.uid != self.user {
            return Err(Refused::User(peer.uid.as_raw()));
        }
        let found = namespaces(&peer.pid.as_raw_nonzero().to_string());
        if found.is_ok_and(|found| found == self.namespaces) {
            Ok(())
        } else {
            Err(Refused::Namespace)
        }
    }
}

fn namespaces(process: &str) -> io::Result<[PathBuf; NAMESPACES.len()]> {
    let [pid, user] =
        NAMESPACES.map(|name| std::fs::read_link(format!("/proc/{process}/ns/{name}")));
    Ok([pid?, user?])
}

impl fmt::Display for Refused {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User(id) => write!(formatter, "the process is of user {id}"),
            Self::Namespace => formatter.write_str("the process is in another namespace"),
            Self::Unknown(error) => write!(formatter, "the process is unknown: {error}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    #[test]
    fn this_process_is_accepted_and_another_user_or_namespace_is_not() {
        let (stream, _other) = UnixStream::pair().unwrap();
        let own = || SameUser::new().unwrap();
        assert_eq!(own().check(&stream), Ok(()));
        let id = rustix::process::geteuid().as_raw();
        let other = SameUser { user: Uid::from_raw(id + 1), ..own() };
        assert_eq!(other.check(&stream), Err(Refused::User(id)));
        let inside = SameUser { namespaces: ["pid:[1]".into(), "user:[1]".into()], ..own() };
        assert_eq!(inside.check(&stream), Err(Refused::Namespace));
    }
}
