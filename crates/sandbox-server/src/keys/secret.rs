//! The server's own secret, with which keys are hashed and from which those of callbacks follow.

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
/// Permissions of anybody but the owner.
const OF_OTHERS: u32 = 0o077;

/// What is stored of a key.
pub(super) type Hash = [u8; 32];

/// A secret that lies beside the database and not in it.
pub(super) struct ServerSecret([u8; BYTES]);

impl ServerSecret {
    /// Reads it, or makes it if there is none.
    pub(super) fn load(data_dir: &Path) -> Result<Self> {
        let path = data_dir.join(FILE);
        let file = match open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                make(data_dir, &path).with_context(|| format!("cannot make {}", path.display()))?;
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
            mode & OF_OTHERS == 0,
            "others may read it (mode {:o}): chmod 600 it, and replace all keys if others did",
            mode & 0o7777
        );
        let mut bytes = Vec::new();
        file.take(BYTES as u64 + 1).read_to_end(&mut bytes)?;
        let length = bytes.len();
        let secret = bytes.try_into();
        let secret = secret.map_err(|_| anyhow::anyhow!("it has {length} bytes, not {BYTES}"))?;
        Ok(Self(secret))
    }

    /// The hash of a whole key, or of a text that cannot be one.
    pub(super) fn hash(&self, key: &str) -> Hash {
        let mac = Hmac::<Sha256>::new_from_slice(&self.0);
        let mut mac = mac.expect("this construction takes secrets of any length");
        mac.update(key.as_bytes());
        mac.finalize().into_bytes().into()
    }
}

fn open(path: &Path) -> io::Result<File> {
    let no_links = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
    OpenOptions::new().read(true).custom_flags(no_links).open(path)
}

/// Written whole under another name first: two processes that start at once agree on one of the two,
/// and a crash leaves no half of one.
fn make(data_dir: &Path, path: &Path) -> Result<()> {
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
