//! The size of the compile cache, and eviction.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use sandbox_core::ByteSize;

use super::super::by_owner::{ByOwner, Evictable};
use super::super::directory::StoreDirectory;
use super::super::locks::Lock;
use super::super::{StoreError, Usage};
use super::OWNER_PREFIX;

/// The total size of all entries, stored in the lock file of the cache, so that adding an entry need not list all others.
///
/// It is raised before an entry appears, and not lowered when a damaged entry is removed: errors make it too high, and the
/// next count corrects it.
pub(super) struct Total<'a> {
    directory: &'a StoreDirectory,
    path: PathBuf,
    lock: Lock,
}

impl Evictable for Entry {
    /// The directory of its owner, if it has one.
    fn owner(&self) -> String {
        let directory = self.path.parent().and_then(Path::file_name).and_then(OsStr::to_str);
        directory.filter(|name| name.starts_with(OWNER_PREFIX)).unwrap_or_default().to_owned()
    }

    fn used(&self) -> SystemTime {
        self.used
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// Fixed length, so that the number is overwritten completely.
const DIGITS: usize = 20;

/// An entry, as a candidate for eviction.
struct Entry {
    used: SystemTime,
    bytes: u64,
    path: PathBuf,
}

impl<'a> Total<'a> {
    /// Waits for the lock of the cache.
    pub(super) fn lock(directory: &'a StoreDirectory) -> Result<Self, StoreError> {
        let path = directory.lock_of_compiled();
        let lock = Lock::wait(&path)?;
        Ok(Self { directory, path, lock })
    }

    /// Adds the size of a new entry. Returns whether the total exceeds the maximum or is unknown.
    pub(super) fn raise(&self, bytes: u64, max_size: ByteSize) -> Result<bool, StoreError> {
        let Some(before) = self.recorded() else {
            return Ok(true);
        };
        let total = before.saturating_add(bytes);
        self.record(total)?;
        Ok(total > max_size.as_u64())
    }

    /// Counts all entries and, if they exceed the maximum, evicts until a tenth is free, so that the next entry need not
    /// evict again. Evicts the least recently used entries of the owner with the most bytes first: no owner can evict the
    /// entries of another.
    pub(super) fn shrink(&self, max_size: ByteSize) -> Result<(), StoreError> {
        let entries = entries(self.directory)?;
        let mut total: u64 = entries.iter().map(|entry| entry.bytes).sum();
        if total > max_size.as_u64() {
            let enough = max_size.as_u64() - max_size.as_u64() / 10;
            let mut entries = ByOwner::new(entries);
            while total > enough
                && let Some(entry) = entries.pop()
            {
                remove(&entry)?;
                total -= entry.bytes;
            }
        }
        self.record(total)
    }

    /// Removes all entries.
    pub(super) fn clear(&self) -> Result<Usage, StoreError> {
        let mut freed = Usage::default();
        for entry in entries(self.directory)? {
            remove(&entry)?;
            freed.add(entry.bytes);
        }
        self.record(0)?;
        Ok(freed)
    }

    fn recorded(&self) -> Option<u64> {
        let mut digits = [0; DIGITS];
        self.lock.file().read_exact_at(&mut digits, 0).ok()?;
        str::from_utf8(&digits).ok()?.parse().ok()
    }

    fn record(&self, total: u64) -> Result<(), StoreError> {
        let text = format!("{total:0DIGITS$}\n");
        let written = self.lock.file().write_all_at(text.as_bytes(), 0);
        written.map_err(StoreError::io("write", &self.path))
    }
}

/// Counts the entries without a lock: others can add and remove entries meanwhile.
pub(super) fn usage(directory: &StoreDirectory) -> Result<Usage, StoreError> {
    let mut usage = Usage::default();
    for entry in entries(directory)? {
        usage.add(entry.bytes);
    }
    Ok(usage)
}

fn entries(directory: &StoreDirectory) -> Result<Vec<Entry>, StoreError> {
    let mut entries = Vec::new();
    let top = directory.compiled();
    for shard in fs::read_dir(&top).map_err(StoreError::io("list", &top))? {
        let shard = shard.map_err(StoreError::io("list", &top))?.path();
        if !shard.is_dir() {
            continue;
        }
        for file in fs::read_dir(&shard).map_err(StoreError::io("list", &shard))? {
            let file = file.map_err(StoreError::io("list", &shard))?;
            // A file that disappeared meanwhile was a damaged entry.
            let Ok(found) = file.metadata() else { continue };
            if found.is_file() {
                let used = found.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                entries.push(Entry { used, bytes: found.len(), path: file.path() });
            }
        }
    }
    Ok(entries)
}

fn remove(entry: &Entry) -> Result<(), StoreError> {
    match fs::remove_file(&entry.path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(StoreError::io("remove", &entry.path)(error))
        }
        _ => Ok(()),
    }
}
