//! The user's directory of helpers, with a socket, a lock file and a log file for each helper.
//!
//! The directory is checked once and used by its descriptor, so that it cannot be replaced
//! afterwards. The process at the other end of each connection is checked too ([`peer`]).

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use super::peer::{Peer, peer};
use super::settings;
use crate::errors::Failure;

const SOCKET: &str = ".socket";
/// Longer than a helper takes to start on the busiest host.
const START_TIMEOUT: Duration = Duration::from_secs(20);
const RETRY_INTERVAL: Duration = Duration::from_millis(2);

/// The directory of this user's helpers.
#[derive(Debug)]
pub(super) struct HelperDirectory {
    path: PathBuf,
    directory: OwnedFd,
}

/// What is connected to a socket.
#[derive(Debug)]
pub(super) enum Connection {
    /// A helper of this user.
    Helper(UnixStream),
    /// No process listens.
    Nobody,
    /// Another process, described. Nothing is sent to it.
    Other(String),
}

/// The right to make and remove one socket.
#[derive(Debug)]
pub(super) struct Lock {
    _file: OwnedFd,
}

impl HelperDirectory {
    /// Opens the user's directory, created if missing.
    pub(super) fn of_user() -> Result<Self, Failure> {
        Self::at(&path())
    }

    fn at(path: &Path) -> Result<Self, Failure> {
        let cannot = |reason: String| {
            Failure::Internal(format!(
                "cannot use '{}' for the helper of --warm: {reason}; run without --warm instead",
                path.display()
            ))
        };
        let failed = |error: Errno| cannot(io::Error::from(error).to_string());
        match rustix::fs::mkdir(path, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(failed(error)),
        }
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let directory = rustix::fs::open(path, flags, Mode::empty());
        let directory = directory.map_err(|error| match error {
            Errno::LOOP | Errno::NOTDIR => cannot("it is not a directory".to_owned()),
            error => failed(error),
        })?;
        let found = rustix::fs::fstat(&directory).map_err(failed)?;
        if found.st_uid != rustix::process::geteuid().as_raw() {
            return Err(cannot(format!("it belongs to user {}", found.st_uid)));
        }
        if found.st_mode & 0o077 != 0 {
            return Err(cannot("others may use it: its mode must be 0700".to_owned()));
        }
        Ok(Self { path: path.to_owned(), directory })
    }

    /// Connects to the helper of this name.
    pub(super) fn connect(&self, key: &str) -> io::Result<Connection> {
        let deadline = Instant::now() + START_TIMEOUT;
        loop {
            let stream = match UnixStream::connect(self.short(key, SOCKET)) {
                Ok(stream) => stream,
                Err(error) => {
                    return match error.kind() {
                        ErrorKind::NotFound | ErrorKind::ConnectionRefused => {
                            Ok(Connection::Nobody)
                        }
                        _ => Err(error),
                    };
                }
            };
            match peer(&stream)? {
                Peer::Own => return Ok(Connection::Helper(stream)),
                // Who made the socket has gone, and the helper that has it now is only starting.
                Peer::Gone if Instant::now() < deadline => thread::sleep(RETRY_INTERVAL),
                Peer::Gone => return Err(io::Error::other("its process cannot be found")),
                Peer::Other(who) => return Ok(Connection::Other(who)),
            }
        }
    }

    /// Connects to the helper of this name; another process is an error.
    pub(super) fn connect_to_own(&self, key: &str) -> io::Result<Option<UnixStream>> {
        match self.connect(key)? {
            Connection::Helper(stream) => Ok(Some(stream)),
            Connection::Nobody => Ok(None),
            Connection::Other(who) => Err(io::Error::other(format!("{who} answers in its place"))),
        }
    }

    /// Waits until nobody else makes or removes this socket, and keeps others from it.
    pub(super) fn lock(&self, key: &str) -> io::Result<Lock> {
        let file = self.lock_file(key)?;
        loop {
            match rustix::fs::flock(&file, FlockOperation::LockExclusive) {
                Ok(()) => return Ok(Lock { _file: file }),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// The same, if that is possible at once.
    pub(super) fn try_lock(&self, key: &str) -> Option<Lock> {
        let file = self.lock_file(key).ok()?;
        let locked = rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive);
        locked.ok().map(|()| Lock { _file: file })
    }

    fn lock_file(&self, key: &str) -> io::Result<OwnedFd> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let name = format!("{key}.lock");
        Ok(rustix::fs::openat(&self.directory, name, flags, Mode::RUSR | Mode::WUSR)?)
    }

    /// Makes the socket, replacing one that no process listens on.
    pub(super) fn listen(&self, key: &str, lock: &Lock) -> io::Result<UnixListener> {
        self.remove(key, lock)?;
        UnixListener::bind(self.short(key, SOCKET))
    }

    /// Removes the socket.
    pub(super) fn remove(&self, key: &str, _: &Lock) -> io::Result<()> {
        match rustix::fs::unlinkat(&self.directory, format!("{key}{SOCKET}"), AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// A new log file, which is the standard error of the helper.
    pub(super) fn log(&self, key: &str) -> io::Result<File> {
        let flags = OFlags::WRONLY
            | OFlags::CREATE
            | OFlags::TRUNC
            | OFlags::APPEND
            | OFlags::NOFOLLOW
            | OFlags::CLOEXEC;
        let name = format!("{key}.log");
        let file = rustix::fs::openat(&self.directory, name, flags, Mode::RUSR | Mode::WUSR)?;
        Ok(File::from(file))
    }

    /// The path of the log file, for messages.
    pub(super) fn log_path(&self, key: &str) -> PathBuf {
        self.path.join(format!("{key}.log"))
    }

    /// The names of all helpers there are or were.
    pub(super) fn keys(&self) -> io::Result<Vec<String>> {
        let mut keys = Vec::new();
        for entry in rustix::fs::Dir::read_from(self.directory.as_fd())? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy();
            keys.extend(name.strip_suffix(SOCKET).map(ToOwned::to_owned));
        }
        keys.sort();
        Ok(keys)
    }

    /// A path by the descriptor: it is the checked directory, and never too long for a socket.
    fn short(&self, key: &str, ending: &str) -> String {
        format!("/proc/self/fd/{}/{key}{ending}", self.directory.as_raw_fd())
    }
}

/// The user's helper directory. A session directory of another user, as under sudo, is not used.
fn path() -> PathBuf {
    let user = rustix::process::geteuid();
    let is_own =
        |path: &PathBuf| rustix::fs::stat(path).is_ok_and(|found| found.st_uid == user.as_raw());
    match settings::runtime_directory().filter(is_own) {
        Some(directory) => directory.join("sandbox-run"),
        None => PathBuf::from(format!("/tmp/sandbox-run-{}", user.as_raw())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn refused(path: &Path) -> String {
        let failure = HelperDirectory::at(path).unwrap_err();
        assert_eq!(failure.exit_code(), 125);
        failure.to_string()
    }

    #[test]
    fn a_directory_that_other_users_can_access_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let (open, link) = (root.path().join("open"), root.path().join("link"));
        fs::create_dir(&open).unwrap();
        fs::set_permissions(&open, fs::Permissions::from_mode(0o750)).unwrap();
        assert!(refused(&open).contains("0700"));
        fs::set_permissions(&open, fs::Permissions::from_mode(0o700)).unwrap();
        HelperDirectory::at(&open).unwrap();
        symlink(&open, &link).unwrap();
        assert!(refused(&link).contains("not a directory"));
        // Only root can give the directory to another user.
        if rustix::process::geteuid().is_root() {
            rustix::fs::chown(&open, Some(rustix::fs::Uid::from_raw(65534)), None).unwrap();
            assert!(refused(&open).contains("belongs to user 65534"));
        }
        assert!(refused(&root.path().join("no/such")).contains("run without --warm instead"));
    }

    #[test]
    fn a_socket_without_a_listener_is_replaced() {
        let root = tempfile::tempdir().unwrap();
        let directory = HelperDirectory::at(&root.path().join("d".repeat(200))).unwrap();
        assert!(directory.connect_to_own("k").unwrap().is_none());
        let lock = directory.lock("k").unwrap();
        drop(directory.listen("k", &lock).unwrap());
        assert!(directory.connect_to_own("k").unwrap().is_none());
        let _listener = directory.listen("k", &lock).unwrap();
        assert!(directory.connect_to_own("k").unwrap().is_some());
        assert_eq!(directory.keys().unwrap(), ["k"]);
        assert!(directory.try_lock("k").is_none(), "two have the lock");
    }
}
