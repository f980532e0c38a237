//! The compile cache. An entry is what came of a compile stage that succeeded.

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

/// What came of a compile stage: its artefacts, and what the compiler said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Compiled {
    /// The artefacts, by the key of the entry.
    pub(crate) artefacts: Arc<Artefacts>,
    /// What it printed to standard output.
    pub(crate) stdout: Vec<u8>,
    /// What it printed to standard error.
    pub(crate) stderr: Vec<u8>,
    /// Both, in the order in which they were written.
    pub(crate) output: Vec<u8>,
}

impl Compiled {
    /// How many bytes it has.
    fn size(&self) -> usize {
        let files = self.artefacts.files.iter().map(|file| file.contents.len()).sum::<usize>();
        files + self.stdout.len() + self.stderr.len() + self.output.len()
    }
}

/// How the directory of an owner's entries begins.
const OWNER_PREFIX: &str = "owner-";

/// Compiled programs by the key of their sources, compiler and options. When there is no room, the owner
/// with the most bytes loses what was not used for the longest time.
#[derive(Debug)]
pub struct CompiledCache {
    directory: StoreDirectory,
    max_size: ByteSize,
    recent: Recent,
}

/// A use is noted no more often.
const USE_UPDATE_INTERVAL: Duration = Duration::from_mins(1);

/// One entry may take this part of the room: a few large programs must not drive out all others.
const MAX_ENTRY_SHARE: u64 = 4;

impl CompiledCache {
    /// The cache in a store; `most` bounds all entries together, and 0 turns it off.
    pub(super) fn open(directory: StoreDirectory, max_size: ByteSize) -> Self {
        Self { directory, max_size, recent: Recent::default() }
    }

    /// How many bytes are kept at most; 0 if the cache is off.
    pub fn max_size(&self) -> ByteSize {
        self.max_size
    }

    /// An entry, if it is there and as it was written. One that is damaged is removed.
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
            // It may be in order, and another time will tell.
            Err(Unreadable::Io) => None,
        }
    }

    /// Keeps an entry, in place of an older one if there is one. An entry that is too large is not
    /// kept, which is no error.
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
            .map_err(StoreError::io("make a file in", &temporary))?;
        encoded
            .write_to(file.as_file_mut())
            .and_then(|()| file.as_file().sync_all())
            .map_err(StoreError::io("write", file.path()))?;
        // The slow part is over: others wait for this lock no longer than a rename takes.
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

    /// How much is kept now.
    pub fn usage(&self) -> Result<Usage, StoreError> {
        bound::usage(&self.directory)
    }

    /// Removes all entries, and says how much that was.
    pub fn clear(&self) -> Result<Usage, StoreError> {
        temporary::sweep(&self.directory);
        self.recent.clear();
        Total::lock(&self.directory)?.clear()
    }

    fn is_off(&self) -> bool {
        self.max_size == ByteSize::bytes(0)
    }

    /// Entries of an owner are in one directory, by which they are counted. Shared ones are spread over
    /// directories by two digits of the key, so that none of them becomes very long.
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

/// What counts as use. Without it the entry only goes earlier than it should. Not every time: to others who
/// have read the file it is another one afterwards.
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
    let parent = path.parent().expect("an entry lies in a directory");
    match DirBuilder::new().mode(0o700).create(parent) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            Err(StoreError::io("make the directory", parent)(error))
        }
        _ => Ok(parent),
    }
}
