//! Identifies the process at the other end of a connection.
//!
//! Checking the user id is not enough. Where sandboxes have no id range of their own, a program in one has the user's id,
//! and a volume may expose the sockets to it: it must neither request executions nor pose as the helper. It cannot have
//! the namespaces of this process, so these are compared.

use std::fs;
use std::io;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use rustix::net::sockopt::socket_peercred;

/// Every sandbox has these of its own.
const NAMESPACES: &[&str] = &["user", "pid", "mnt"];

/// Who it is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Peer {
    /// Our user, outside of every sandbox.
    Own,
    /// It has ended, or is nowhere to be seen from here.
    Gone,
    /// Somebody else, described.
    Other(String),
}

/// Who has connected, or has last made the socket listen that we connected to.
pub(super) fn peer(stream: &UnixStream) -> io::Result<Peer> {
    let credentials = socket_peercred(stream)?;
    if credentials.uid != rustix::process::geteuid() {
        return Ok(Peer::Other(format!("user {}", credentials.uid.as_raw())));
    }
    for name in NAMESPACES {
        let theirs = namespace(&credentials.pid.to_string(), name);
        match theirs {
            Ok(theirs) if theirs == namespace("self", name)? => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Peer::Gone),
            // One that does not let itself be looked at is as good as one that is seen to be.
            _ => return Ok(Peer::Other("a process in another namespace".to_owned())),
        }
    }
    Ok(Peer::Own)
}

fn namespace(process: &str, name: &str) -> io::Result<PathBuf> {
    fs::read_link(format!("/proc/{process}/ns/{name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_our_own() {
        let (one, _other) = UnixStream::pair().unwrap();
        assert_eq!(peer(&one).unwrap(), Peer::Own);
    }
}
