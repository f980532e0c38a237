//! The server secret: hashes API keys, and derives the secrets that sign callbacks.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use super::random;

const FILE: &str = "server.secret";
const BYTES: usize = 32;
/// Mode bits of group and others.
const GROUP_AND_OTHERS: u32 = 0o077;

/// The hash of a key, as stored.
pub(super) type Hash = [u8; 32];

/// The server secret. It is in a file next to the database, not in it.
pub(super) struct ServerSecret([u8; BYTES]);

impl ServerSecret {
    /// Reads the secret. Creates it if it does not exist.
    pub(super) fn load(data_dir: &Path) -> Result<Self> {
        let path = data_dir.join(FILE);
        let file = match open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                create(data_dir, &path)
                    .with_context(|| format!("cannot create {}", path.display()))?;
                open(&path)
            }
            opened => opened,
        };
        let file = file.with_context(|| format!("cannot open {}", path.display()))?;
        Self::read(file).with_context(|| format!("cannot use {}", path.display()))
    }

    fn read(file: File) -> Result<Self> {
        let mode = file.metadata()?.mode();
        ensure!(
            mode & GROUP_AND_OTHERS == 0,
            "other users can read it (mode {:o}): chmod 600 it, and replace all keys if another user has read it",
            mode & 0o7777
        );
        let mut bytes = Vec::new();
        file.take(BYTES as u64 + 1).read_to_end(&mut bytes)?;
        let length = bytes.len();
        let secret = bytes.try_into();
        let secret =
            secret.map_err(|_| anyhow::anyhow!("it must have {BYTES} bytes, not {length}"))?;
        Ok(Self(secret))
    }

    /// The keyed hash of a text.
    pub(super) fn hash(&self, key: &str) -> Hash {
        let mac = Hmac::<Sha256>::new_from_slice(&self.0);
        let mut mac = mac.expect("HMAC accepts keys of any length");
        mac.update(key.as_bytes());
        mac.finalize().into_bytes().into()
    }
}

fn open(path: &Path) -> io::Result<File> {
    let no_links = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
    OpenOptions::new().read(true).custom_flags(no_links).open(path)
}

/// Writes a new secret to a temporary file and links it to `path`: of two processes that start at the same time only one
/// creates the file, and a crash leaves no partial secret.
fn create(data_dir: &Path, path: &Path) -> Result<()> {
    let temporary = data_dir.join(format!("{FILE}.{}", std::process::id()));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
    let linked = (|| {
        file.write_all(&random::<BYTES>()?)?;
        file.sync_all()?;
        match fs::hard_link(&temporary, path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error.into()),
            _ => Ok(()),
        }
    })();
    fs::remove_file(&temporary)?;
    linked
}
