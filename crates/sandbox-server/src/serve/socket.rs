//! The Unix socket: bound by one server at a time, for processes of its own user, and removed at the end.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::os::unix::net::UnixListener as StdUnixListener;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use tokio::net::{UnixListener, UnixStream};

use super::accept::Listener;
use super::peer::SameUser;
use crate::api::Peer;

/// Maximum number of connections that wait to be accepted.
const BACKLOG: i32 = 128;

/// A listening socket at a path. Dropping it removes the path.
pub(super) struct UnixSocket {
    listener: UnixListener,
    path: PathBuf,
    /// Device and inode of the path.
    identity: (u64, u64),
    same_user: SameUser,
}

impl UnixSocket {
    /// Listens at this path. Replaces a socket that no process listens on.
    pub(super) fn bind(path: &Path) -> Result<Self> {
        let listening = || format!("failed to listen on the socket {}", path.display());
        let same_user = SameUser::new().with_context(listening)?;
        let address = SocketAddrUnix::new(path).with_context(listening)?;
        // Two servers that replace the socket at the same time would both succeed.
        let _lock = lock_directory(path).with_context(listening)?;
        remove_unused(path, &address)?;
        let listener = listen(&address).and_then(UnixListener::from_std);
        let listener = listener.with_context(listening)?;
        let identity = identity(path).with_context(listening)?;
        Ok(Self { listener, path: path.to_owned(), identity, same_user })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Listener for UnixSocket {
    type Stream = UnixStream;

    async fn accept(&self) -> io::Result<(UnixStream, Peer)> {
        loop {
            let (stream, _) = self.listener.accept().await?;
            match self.same_user.check(&stream) {
                Ok(()) => return Ok((stream, Peer::SameUser)),
                Err(reason) => tracing::warn!(%reason, "refused a connection to the socket"),
            }
        }
    }
}

impl Drop for UnixSocket {
    fn drop(&mut self) {
        // It is removed while it still listens: a client finds either a server or no socket. Without the lock, it stays,
        // and the next server replaces it.
        if let Ok(_lock) = lock_directory(&self.path)
            && identity(&self.path).is_ok_and(|found| found == self.identity)
        {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn listen(address: &SocketAddrUnix) -> io::Result<StdUnixListener> {
    let socket = socket()?;
    // The path gets the mode of the socket, so that it is never open to other users.
    rustix::fs::fchmod(&socket, Mode::RUSR | Mode::WUSR)?;
    rustix::net::bind(&socket, address)?;
    rustix::net::listen(&socket, BACKLOG)?;
    Ok(socket.into())
}

fn socket() -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
}

/// Removes a socket that no process listens on. Anything else at the path is an error.
fn remove_unused(path: &Path, address: &SocketAddrUnix) -> Result<()> {
    match path.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Ok(found) if !found.file_type().is_socket() => {
            bail!(
                "{} exists and is not a socket: remove it, or choose another --socket",
                path.display()
            )
        }
        found => found.with_context(|| format!("failed to read {}", path.display()))?,
    };
    let probe = socket().context("failed to create a socket")?;
    match rustix::net::connect(&probe, address) {
        Err(Errno::CONNREFUSED) => std::fs::remove_file(path)
            .with_context(|| format!("failed to remove the unused socket {}", path.display())),
        // With a full backlog, the error is EAGAIN.
        Ok(()) | Err(Errno::AGAIN) => {
            bail!(
                "another process listens on {}: stop it, or choose another --socket",
                path.display()
            )
        }
        Err(error) => {
            Err(error).with_context(|| format!("failed to connect to {}", path.display()))
        }
    }
}

/// Locks the directory of the socket until the descriptor is dropped.
fn lock_directory(path: &Path) -> io::Result<OwnedFd> {
    let directory = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
    let directory = rustix::fs::open(directory, flags, Mode::empty())?;
    rustix::io::retry_on_intr(|| rustix::fs::flock(&directory, FlockOperation::LockExclusive))?;
    Ok(directory)
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    path.symlink_metadata().map(|found| (found.dev(), found.ino()))
}
