//! A cache of toolchain versions, kept between processes.
//!
//! Querying the version of a Java compiler takes longer than running a cached program. An entry is valid while the file is
//! unchanged: same size, change time and inode.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Mutex;
use std::sync::PoisonError;

use serde::{Deserialize, Serialize};

/// More than any host has toolchains. A cache that grows past this is cleared.
const MAX_ENTRIES: usize = 1000;

/// The state of a file when it was probed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileStamp {
    size: u64,
    changed_seconds: i64,
    changed_nanos: i64,
    inode: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Entry {
    stamp: FileStamp,
    /// The run_program: other arguments may bring another entry.
    args: Vec<String>,
    version: String,
}

type Entries = BTreeMap<String, Entry>;

/// Serializes writers of this process. Another process can overwrite an entry; it is then queried again.
static WRITING: Mutex<()> = Mutex::new(());

impl FileStamp {
    pub(crate) fn of(program: &Path) -> Option<Self> {
        let metadata = program.metadata().ok()?;
        Some(Self {
            size: metadata.size(),
            changed_seconds: metadata.ctime(),
            changed_nanos: metadata.ctime_nsec(),
            inode: metadata.ino(),
        })
    }

    /// One line, as a part of cache keys.
    pub(crate) fn describe(&self) -> String {
        let Self { size, changed_seconds, changed_nanos, inode } = self;
        format!("{size} {changed_seconds}.{changed_nanos} {inode}")
    }
}

/// The cached version of a program, if the program is unchanged.
pub(crate) fn get(cache: &Path, program: &Path, args: &[String]) -> Option<String> {
    let entry = read(cache).remove(program.to_str()?)?;
    let same = entry.args == args && Some(entry.stamp) == FileStamp::of(program);
    same.then_some(entry.version)
}

/// Adds an entry. Errors are ignored: without the cache, queries are only slower.
pub(crate) fn put(cache: &Path, program: &Path, args: &[String], version: &str) {
    let _writing = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
    let (Some(name), Some(stamp)) = (program.to_str(), FileStamp::of(program)) else { return };
    let mut entries = read(cache);
    if entries.len() >= MAX_ENTRIES {
        entries.clear();
    }
    let entry = Entry { stamp, args: args.to_vec(), version: version.to_owned() };
    entries.insert(name.to_owned(), entry);
    let _ = write(cache, &entries);
}

fn read(cache: &Path) -> Entries {
    let text = std::fs::read(cache).unwrap_or_default();
    serde_json::from_slice(&text).unwrap_or_default()
}

fn write(cache: &Path, entries: &Entries) -> std::io::Result<()> {
    let directory = cache.parent().unwrap_or(Path::new("/"));
    std::fs::create_dir_all(directory)?;
    // Write atomically: a reader sees the old file or the new one.
    let temporary = directory.join(format!(".versions.{}", std::process::id()));
    std::fs::write(&temporary, serde_json::to_vec(entries)?)?;
    std::fs::rename(&temporary, cache)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_valid_for_the_same_file_and_arguments_only() {
        let directory = tempfile::tempdir().unwrap();
        let (cache, program) = (directory.path().join("m/v.json"), directory.path().join("toy"));
        let args = ["--version".to_owned()];
        std::fs::write(&program, "one").unwrap();
        assert_eq!(get(&cache, &program, &args), None);
        put(&cache, &program, &args, "1.2");
        assert_eq!(get(&cache, &program, &args).as_deref(), Some("1.2"));
        assert_eq!(get(&cache, &program, &[]), None, "other arguments");
        std::fs::write(&program, "three").unwrap();
        assert_eq!(get(&cache, &program, &args), None, "another file");
        put(&cache, &program, &args, "1.3");
        std::fs::write(&cache, "{ broken").unwrap();
        assert_eq!(get(&cache, &program, &args), None, "a damaged cache counts as empty");
    }
}
