//! What toolchains said of their versions, kept between processes.
//!
//! Asking a Java compiler for its version takes longer than running a cached program. An answer holds
//! as long as the file is the same: same size, same time of change, same place on the disk.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Mutex;
use std::sync::PoisonError;

use serde::{Deserialize, Serialize};

/// More answers than any host has toolchains: a file that has grown past this is begun anew.
const MAX_ENTRIES: usize = 1000;

/// A program as it was when it answered.
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
    /// The run_program: other arguments may bring another answer.
    args: Vec<String>,
    version: String,
}

type Entries = BTreeMap<String, Entry>;

/// Serialises writers of this process. Others may overwrite what we add; it is then asked again.
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

    /// In one line, for what depends on this very file.
    pub(crate) fn describe(&self) -> String {
        let Self { size, changed_seconds, changed_nanos, inode } = self;
        format!("{size} {changed_seconds}.{changed_nanos} {inode}")
    }
}

/// The version a program told before, if it is still the same program.
pub(crate) fn get(memory: &Path, program: &Path, args: &[String]) -> Option<String> {
    let answer = read(memory).remove(program.to_str()?)?;
    let same = answer.args == args && Some(answer.stamp) == FileStamp::of(program);
    same.then_some(answer.version)
}

/// Keeps an answer. A memory that cannot be written is only slower.
pub(crate) fn put(memory: &Path, program: &Path, args: &[String], version: &str) {
    let _writing = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
    let (Some(name), Some(stamp)) = (program.to_str(), FileStamp::of(program)) else { return };
    let mut answers = read(memory);
    if answers.len() >= MAX_ENTRIES {
        answers.clear();
    }
    let answer = Entry { stamp, args: args.to_vec(), version: version.to_owned() };
    answers.insert(name.to_owned(), answer);
    let _ = write(memory, &answers);
}

fn read(memory: &Path) -> Entries {
    let text = std::fs::read(memory).unwrap_or_default();
    serde_json::from_slice(&text).unwrap_or_default()
}

fn write(memory: &Path, answers: &Entries) -> std::io::Result<()> {
    let directory = memory.parent().unwrap_or(Path::new("/"));
    std::fs::create_dir_all(directory)?;
    // A reader sees the old file or the new one, never half of one.
    let temporary = directory.join(format!(".versions.{}", std::process::id()));
    std::fs::write(&temporary, serde_json::to_vec(answers)?)?;
    std::fs::rename(&temporary, memory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_holds_for_the_same_file_and_question_only() {
        let directory = tempfile::tempdir().unwrap();
        let (memory, program) = (directory.path().join("m/v.json"), directory.path().join("toy"));
        let args = ["--version".to_owned()];
        std::fs::write(&program, "one").unwrap();
        assert_eq!(get(&memory, &program, &args), None);
        put(&memory, &program, &args, "1.2");
        assert_eq!(get(&memory, &program, &args).as_deref(), Some("1.2"));
        assert_eq!(get(&memory, &program, &[]), None, "another run_program");
        std::fs::write(&program, "three").unwrap();
        assert_eq!(get(&memory, &program, &args), None, "another file");
        put(&memory, &program, &args, "1.3");
        std::fs::write(&memory, "{ broken").unwrap();
        assert_eq!(get(&memory, &program, &args), None, "a broken memory is an empty one");
    }
}
