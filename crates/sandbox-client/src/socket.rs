//! The Unix socket of a server: who listens on it, and that a request arrives there.
//!
//! Without root, a program in a sandbox has the user's id. If a volume shows it the directory of the socket, it can put
//! one of its own there: it would be sent code, and could send any report. It never has the PID and user namespaces of
//! this process, so these are compared, as the server does with its clients.
//!
//! The HTTP library connects by path, and does not hand out its connection. The check and the requests therefore connect
//! through one descriptor of the socket's inode, which has the same listener for as long as it exists, whatever is at the
//! path by then.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{Mode, OFlags, fstat};
use rustix::io::DupFlags;
use rustix::net::sockopt::socket_peercred;

/// Namespaces that a program in a sandbox cannot share with this process.
const NAMESPACES: [&str; 2] = ["pid", "user"];

/// The socket at a path, once it is checked.
#[derive(Debug)]
pub(crate) struct CheckedSocket {
    path: PathBuf,
    /// The inode that was checked last. Until then, one that nobody can connect to.
    inode: Mutex<OwnedFd>,
}

impl CheckedSocket {
    /// Checks nothing yet.
    pub(crate) fn new(path: &Path) -> io::Result<Self> {
        Ok(Self { path: path.to_owned(), inode: Mutex::new(open(Path::new("/"))?) })
    }

    /// The path that leads to the checked socket while this value exists.
    pub(crate) fn checked_path(&self) -> PathBuf {
        path_of(&self.inode.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Checks the process that listens, unless the same socket was checked before.
    pub(crate) fn check(&self) -> io::Result<()> {
        let found = open(&self.path)?;
        let mut inode = self.inode.lock().unwrap_or_else(PoisonError::into_inner);
        let (old, new) = (fstat(&*inode)?, fstat(&found)?);
        // The descriptor keeps the number of the inode from being used again.
        if (old.st_dev, old.st_ino) != (new.st_dev, new.st_ino) {
            check_listener(&UnixStream::connect(path_of(&found))?)?;
            // Keeps the number of the descriptor, and with it the path.
            rustix::io::dup3(&found, &mut inode, DupFlags::CLOEXEC)?;
        }
        Ok(())
    }
}

fn open(path: &Path) -> io::Result<OwnedFd> {
    Ok(rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?)
}

fn path_of(inode: &OwnedFd) -> PathBuf {
    format!("/proc/self/fd/{}", inode.as_raw_fd()).into()
}

/// Checks the process that has made the socket listen. The kernel names it by its id: if it has ended and another process
/// has the id, the other one is checked.
fn check_listener(stream: &UnixStream) -> io::Result<()> {
    let listener = socket_peercred(stream)?;
    let refuse = |reason: String| Err(io::Error::new(io::ErrorKind::PermissionDenied, reason));
    if listener.uid != rustix::process::geteuid() {
        return refuse(format!("its process is of user {}", listener.uid.as_raw()));
    }
    let process = listener.pid.as_raw_nonzero().to_string();
    let is_same = |name| {
        let theirs = namespace(&process, name);
        theirs.is_ok_and(|theirs| namespace("self", name).is_ok_and(|own| own == theirs))
    };
    if NAMESPACES.into_iter().all(is_same) {
        Ok(())
    } else {
        refuse("its process is in another namespace".to_owned())
    }
}

fn namespace(process: &str, name: &str) -> io::Result<PathBuf> {
    std::fs::read_link(format!("/proc/{process}/ns/{name}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;
    use std::os::unix::net::UnixListener;

    #[test]
    fn requests_arrive_at_the_socket_that_was_checked() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("socket");
        let checked = UnixListener::bind(&path).unwrap();
        let socket = CheckedSocket::new(&path).unwrap();
        assert!(UnixStream::connect(socket.checked_path()).is_err(), "it is not checked");
        socket.check().unwrap();
        drop(checked.accept().unwrap());
        // The same socket is checked once.
        socket.check().unwrap();

        std::fs::remove_file(&path).unwrap();
        let other = UnixListener::bind(&path).unwrap();
        let request = UnixStream::connect(socket.checked_path()).unwrap();
        let (mut arrived, _) = checked.accept().unwrap();
        drop(request);
        assert_eq!(arrived.read(&mut [0]).unwrap(), 0);
        // The other one is checked in turn.
        socket.check().unwrap();
        drop(other.accept().unwrap());
        drop(UnixStream::connect(socket.checked_path()).unwrap());
        drop(other.accept().unwrap());
    }
}
