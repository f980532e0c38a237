//! Canaries: targets on the host that an attack must not reach. A file, a directory, a process, sockets, shared memory and a
//! key are created for one series of attacks and removed after it.

use std::collections::BTreeMap;
use std::fs::{self, File, Permissions};
use std::io::{self, Read};
use std::net::{Ipv4Addr, TcpListener};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::Path;
use std::str::FromStr;

use linux_keyutils::{Key, KeyError, KeyRing, KeyRingIdentifier};
use tempfile::TempDir;

use super::shm_holder::ShmHolder;

macro_rules! placeholders {
    ($($variant:ident = $name:literal,)+) => {
        /// A placeholder in an attack for a canary on the host.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub(super) enum Placeholder { $($variant,)+ }

        impl Placeholder {
            pub(super) const ALL: &'static [Self] = &[$(Self::$variant),+];

            fn text(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }
        }
    };
}

placeholders! {
    HostFile = "{host_file}",
    HostDir = "{host_dir}",
    HostPid = "{host_pid}",
    HostName = "{host_name}",
    TcpPort = "{tcp_port}",
    AbstractSocket = "{abstract_socket}",
    ShmKey = "{shm_key}",
    KeyringKey = "{keyring_key}",
    Secret = "{secret}",
}

impl Placeholder {
    pub(super) fn is_in(self, text: &str) -> bool {
        text.contains(self.text())
    }
}

impl FromStr for Placeholder {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let known = Self::ALL.iter().find(|known| known.text() == text);
        known.copied().ok_or_else(|| format!("'{text}' is not a placeholder"))
    }
}

/// A canary could not be set up.
#[derive(Debug, thiserror::Error)]
#[error("cannot set up {what} as a canary for the attacks")]
pub struct CanaryError {
    what: &'static str,
    source: io::Error,
}

/// The canaries. Dropping it removes everything from the host.
pub(super) struct Canaries {
    values: BTreeMap<Placeholder, Result<String, String>>,
    host_secret: String,
    secrets: Vec<String>,
    /// Dropped first: it also removes the directory if this process is killed.
    _shm_holder: Option<ShmHolder>,
    _key: Option<SessionKey>,
    /// Both only listen: a connection succeeds as soon as the kernel has queued it.
    _sockets: (TcpListener, UnixListener),
    _directory: TempDir,
}

impl Canaries {
    /// Sets everything up. Call it on the thread that starts the sandboxes afterwards: a session
    /// keyring belongs to a thread and those it starts.
    pub(super) fn set_up(python: Option<&Path>) -> Result<Self, CanaryError> {
        let failed = |what| move |source| CanaryError { what, source };
        let word = || random_word().map_err(failed("a secret"));
        let (host_secret, shm_secret, key_secret, secret) = (word()?, word()?, word()?, word()?);
        let directory = open_directory().map_err(failed("a directory"))?;
        let file = directory.path().join("readable-by-all");
        let write = fs::write(&file, format!("{host_secret}\n"))
            .and_then(|()| fs::set_permissions(&file, Permissions::from_mode(0o644)));
        write.map_err(failed("a file"))?;
        let shared = directory.path().join("writable-by-all");
        let make = fs::create_dir(&shared)
            .and_then(|()| fs::set_permissions(&shared, Permissions::from_mode(0o1777)));
        make.map_err(failed("a directory"))?;

        let tcp = TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
        let tcp = tcp.map_err(failed("a port"))?;
        let port = tcp.local_addr().map_err(failed("a port"))?.port();
        let name = format!("sandbox-attack-{}", word()?);
        let unix = SocketAddr::from_abstract_name(&name)
            .and_then(|address| UnixListener::bind_addr(&address));
        let unix = unix.map_err(failed("an abstract socket"))?;

        let shm_holder = ShmHolder::start(python, &shm_secret, directory.path());
        let description = format!("sandbox-attack-{}", word()?);
        let key = SessionKey::add(&description, &key_secret);
        let host_name = fs::read_to_string("/proc/sys/kernel/hostname");
        let values = [
            (Placeholder::HostFile, Ok(text(&file))),
            (Placeholder::HostDir, Ok(text(&shared))),
            (Placeholder::HostPid, part(&shm_holder, ShmHolder::pid)),
            (Placeholder::HostName, part(&host_name, |name| name.trim().to_owned())),
            (Placeholder::TcpPort, Ok(port.to_string())),
            (Placeholder::AbstractSocket, Ok(format!("@{name}"))),
            (Placeholder::ShmKey, part(&shm_holder, ShmHolder::shm_key)),
            (Placeholder::KeyringKey, part(&key, |_| description)),
            (Placeholder::Secret, Ok(secret.clone())),
        ];
        Ok(Self {
            values: values.into(),
            secrets: vec![host_secret.clone(), shm_secret, key_secret, secret],
            host_secret,
            _shm_holder: shm_holder.ok(),
            _key: key.ok(),
            _sockets: (tcp, unix),
            _directory: directory,
        })
    }

    /// Why a canary is missing, if so.
    pub(super) fn missing(&self, placeholder: Placeholder) -> Option<&str> {
        let value = self.values.get(&placeholder)?;
        value.as_ref().err().map(String::as_str)
    }

    /// The text with its placeholders replaced.
    pub(super) fn fill_in(&self, text: &str) -> String {
        let mut filled = text.to_owned();
        for (placeholder, value) in &self.values {
            if let Ok(value) = value {
                filled = filled.replace(placeholder.text(), value);
            }
        }
        filled
    }

    /// The first line of the host's file.
    pub(super) fn host_secret(&self) -> &str {
        &self.host_secret
    }

    /// Secrets that no program inside every protection can know.
    pub(super) fn secrets(&self) -> &[String] {
        &self.secrets
    }
}

/// A key in this thread's session keyring, which is made if there is none.
struct SessionKey(Key);

impl SessionKey {
    fn add(description: &str, secret: &str) -> Result<Self, KeyError> {
        let keyring = KeyRing::from_special_id(KeyRingIdentifier::Session, true)?;
        keyring.add_key(description, secret).map(Self)
    }
}

impl Drop for SessionKey {
    fn drop(&mut self) {
        // Errors are ignored: the key also disappears with the session.
        let _ = self.0.invalidate();
    }
}

/// A directory that everyone may enter.
fn open_directory() -> io::Result<TempDir> {
    let directory = tempfile::Builder::new().prefix("sandbox-attack-").tempdir_in("/var/tmp")?;
    fs::set_permissions(directory.path(), Permissions::from_mode(0o755))?;
    Ok(directory)
}

fn part<T, E: ToString>(
    thing: &Result<T, E>,
    part: impl FnOnce(&T) -> String,
) -> Result<String, String> {
    match thing {
        Ok(thing) => Ok(part(thing)),
        Err(error) => Err(error.to_string()),
    }
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// A random word that cannot be guessed.
fn random_word() -> io::Result<String> {
    let mut bytes = [0; size_of::<u128>()];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    // It begins with a letter, so that every tool takes it for a word.
    Ok(format!("w{:032x}", u128::from_ne_bytes(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_filled_in_and_the_host_is_left_as_it_was() {
        let canaries = Canaries::set_up(None).unwrap();
        let filled = canaries.fill_in("{host_file} {host_dir} {unknown}");
        let words: Vec<&str> = filled.split(' ').collect();
        let [file, directory, "{unknown}"] = words[..] else { panic!("{filled}") };
        let contents = fs::read_to_string(file).unwrap();
        assert_eq!(contents.trim(), canaries.host_secret());
        assert!(Path::new(directory).is_dir());
        drop(canaries);
        assert!(!Path::new(file).exists() && !Path::new(directory).exists());
    }

    #[test]
    fn what_needs_python_is_told_as_missing_without_it() {
        let canaries = Canaries::set_up(None).unwrap();
        assert!(canaries.missing(Placeholder::ShmKey).is_some());
        assert!(canaries.missing(Placeholder::HostFile).is_none());
    }
}
