//! The compile cache. An entry is the result of a successful compile stage.

mod bound;
mod entry;
mod recent;

#[cfg(test)]
mod tests;

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use sandbox_core::{Artefacts, ByteSize};

use super::directory::StoreDirectory;
use super::{Key, KeyBuilder, StoreError, Usage, temporary};

use bound::Total;
use entry::{Encoded, Unreadable};
use recent::{Recent, Stamp};

/// The result of a compile stage: its artefacts and the compiler's output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Compiled {
    /// The artefacts, by the key of the entry.
    pub(crate) artefacts: Arc<Artefacts>,
    /// Standard output of the compiler.
    pub(crate) stdout: Vec<u8>,
    /// Standard error of the compiler.
    pub(crate) stderr: Vec<u8>,
    /// Both, interleaved as written.
    pub(crate) output: Vec<u8>,
}

impl Compiled {
    /// Its size in bytes.
    fn size(&self) -> usize {
        let files = self.artefacts.files.iter().map(|file| file.contents.len()).sum::<usize>();
        files + self.stdout.len() + self.stderr.len() + self.output.len()
    }
}

/// Prefix of the directory of an owner's entries.
const OWNER_PREFIX: &str = "owner-";

/// Compiled programs, keyed by sources, compiler and options. Evicts the least recently used entry of the owner with the
/// most bytes.
#[derive(Debug)]
pub struct CompiledCache {
    directory: StoreDirectory,
    max_size: ByteSize,
    recent: Recent,
}

/// The time of use of an entry is updated at most this often.
const USE_UPDATE_INTERVAL: Duration = Duration::from_mins(1);

/// An entry may use at most one part in this many of the cache: a few large programs must not evict all others.
const MAX_ENTRY_SHARE: u64 = 4;

impl CompiledCache {
    /// The cache of a store. `max_size` bounds all entries together; 0 turns the cache off.
    pub(super) fn open(directory: StoreDirectory, max_size: ByteSize) -> Self {
        Self { directory, max_size, recent: Recent::default() }
    }

    /// Maximum size of all entries; 0 if the cache is off.
    pub fn max_size(&self) -> ByteSize {
        self.max_size
    }

    /// Returns an entry, if it exists and is intact. Removes a damaged one.
    pub(crate) fn get(&self, owner: Option<&str>, key: &Key) -> Option<Arc<Compiled>> {
        if self.is_off() {
            return None;
        }
        let path = self.path_of(owner, key);
        if let Some(compiled) = self.recent.get(key, &path) {
            return Some(compiled);
        }
        let file = File::open(&path).ok()?;
        match entry::read(&file, key) {
            Ok(compiled) => {
                note_use(&file);
                let compiled = Arc::new(compiled);
                if let Ok(metadata) = file.metadata() {
                    self.recent.add(key, Stamp::of(&metadata), &compiled);
                }
                Some(compiled)
            }
            Err(Unreadable::Damaged) => {
                let _ = fs::remove_file(&path);
                None
            }
            // The entry may be intact: keep it for a later attempt.
            Err(Unreadable::Io) => None,
        }
    }

    /// Stores an entry, replacing an existing one. An entry that is too large is skipped without an error.
    pub(crate) fn put(
        &self,
        owner: Option<&str>,
        key: &Key,
        compiled: &Compiled,
    ) -> Result<(), StoreError> {
        let encoded = Encoded::new(key, compiled);
        let length = encoded.length();
        if self.is_off() || length > self.max_size.as_u64() / MAX_ENTRY_SHARE {
            return Ok(());
        }
        temporary::sweep(&self.directory);
        let path = self.path_of(owner, key);
        let shard = make_parent(&path)?;
        let temporary = self.directory.temporary();
        let mut file = tempfile::Builder::new()
            .prefix("compiled-")
            .tempfile_in(&temporary)
            .map_err(StoreError::io("create a file in", &temporary))?;
        encoded
            .write_to(file.as_file_mut())
            .and_then(|()| file.as_file().sync_all())
            .map_err(StoreError::io("write", file.path()))?;
        // Lock only after the slow writes: others wait no longer than a rename takes.
        let total = Total::lock(&self.directory)?;
        let over = total.raise(length, self.max_size)?;
        file.persist(&path)
            .map_err(|error| StoreError::io("rename a file to", &path)(error.error))?;
        if over {
            total.shrink(self.max_size)?;
        }
        drop(total);
        let synced = File::open(shard).and_then(|shard| shard.sync_all());
        synced.map_err(StoreError::io("write", shard))
    }

    /// Current number and size of the entries.
    pub fn usage(&self) -> Result<Usage, StoreError> {
        bound::usage(&self.directory)
    }

    /// Removes all entries, and returns their number and size.
    pub fn clear(&self) -> Result<Usage, StoreError> {
        temporary::sweep(&self.directory);
        self.recent.clear();
        Total::lock(&self.directory)?.clear()
    }

    fn is_off(&self) -> bool {
        self.max_size == ByteSize::bytes(0)
    }

    /// Entries of an owner are in one directory, by which they are counted. Shared entries are spread over directories by
    /// two digits of the key, so that no directory becomes very large.
    fn path_of(&self, owner: Option<&str>, key: &Key) -> PathBuf {
        let name = key.to_string();
        let directory = match owner {
            Some(owner) => format!(
                "{OWNER_PREFIX}{}",
                KeyBuilder::new("cache owner").part("name", owner).finish()
            ),
            None => name[..2].to_owned(),
        };
        self.directory.compiled().join(directory).join(name)
    }
}

/// Updates the time of use. Errors are ignored: the entry is only evicted too early. Not done at every use, because the
/// change invalidates the copies that other processes hold in memory.
fn note_use(file: &File) {
    let now = SystemTime::now();
    let modified = file.metadata().and_then(|metadata| metadata.modified());
    let is_recent =
        |at: SystemTime| now.duration_since(at).is_ok_and(|age| age < USE_UPDATE_INTERVAL);
    if !modified.is_ok_and(is_recent) {
        let _ = file.set_modified(now);
    }
}

fn make_parent(path: &Path) -> Result<&Path, StoreError> {
    let parent = path.parent().expect("an entry has a parent directory");
    match DirBuilder::new().mode(0o700).create(parent) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            Err(StoreError::io("create the directory", parent)(error))
        }
        _ => Ok(parent),
    }
}
