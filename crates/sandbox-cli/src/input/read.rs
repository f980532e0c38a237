//! Reads files and directories into memory, within a budget.

use std::fs::{self, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

use super::open::{self, cannot_read};
use super::program::SourceFile;
use crate::errors::Failure;

/// Maximum size of all input of one request, which is held in memory.
const MAX_BYTES: u64 = 1 << 30;
/// Maximum number of files of one request. The library refuses more; checking here avoids reading them first.
const MAX_FILES: usize = 10_000;
/// Maximum directory depth of a project.
const MAX_DEPTH: usize = 64;

/// How many more bytes may be read.
pub(crate) struct Budget {
    left: u64,
}

/// The files of a directory, and notes about those that were skipped.
#[derive(Debug)]
pub(crate) struct Walked {
    pub(crate) files: Vec<SourceFile>,
    pub(crate) notes: Vec<String>,
}

impl Budget {
    pub(crate) fn new() -> Self {
        Self { left: MAX_BYTES }
    }

    /// Reads to the end, and fails when the budget is spent, because a pipe may have no end.
    pub(crate) fn read(&mut self, reader: impl Read, name: &str) -> Result<Vec<u8>, Failure> {
        let mut contents = Vec::new();
        reader
            .take(self.left + 1)
            .read_to_end(&mut contents)
            .map_err(|error| cannot_read(name, &error))?;
        self.check(contents.len() as u64, name)?;
        self.left -= contents.len() as u64;
        Ok(contents)
    }

    /// Refuses a size that exceeds the budget, before anything is read.
    fn check(&self, size: u64, name: &str) -> Result<(), Failure> {
        if size <= self.left {
            return Ok(());
        }
        Err(Failure::Usage(format!(
            "'{name}' exceeds the maximum input of 1G per request: \
             mount large directories with --volume instead"
        )))
    }
}

/// Reads a file that the user named. Links are followed, as everywhere on a command line.
pub(crate) fn file(path: &Path, budget: &mut Budget) -> Result<Vec<u8>, Failure> {
    let name = path.display().to_string();
    let input = open::open(path)?;
    budget.check(input.size, &name)?;
    budget.read(input.file, &name)
}

/// Reads a file that the user named as UTF-8 text.
pub(crate) fn read_text(path: &Path) -> Result<String, Failure> {
    let contents = file(path, &mut Budget::new())?;
    String::from_utf8(contents)
        .map_err(|_| Failure::Usage(format!("'{}' is not UTF-8", path.display())))
}

/// Reads everything below a directory, sorted by name. Links are not followed, because an untrusted project could
/// link to files that were never meant to be copied.
pub(crate) fn directory(root: &Path, budget: &mut Budget) -> Result<Walked, Failure> {
    let mut walk = Walk { files: Vec::new(), skipped: 0, budget };
    walk.walk(root, "", 0)?;
    let notes = match walk.skipped {
        0 => Vec::new(),
        1 => vec![format!("skipped 1 link or special file in '{}'", root.display())],
        count => {
            vec![format!("skipped {count} links and special files in '{}'", root.display())]
        }
    };
    Ok(Walked { files: walk.files, notes })
}

struct Walk<'a> {
    files: Vec<SourceFile>,
    skipped: usize,
    budget: &'a mut Budget,
}

impl Walk<'_> {
    fn walk(&mut self, directory: &Path, prefix: &str, depth: usize) -> Result<(), Failure> {
        let name = directory.display().to_string();
        if depth > MAX_DEPTH {
            return Err(Failure::Usage(format!(
                "'{name}' is nested deeper than the maximum of {MAX_DEPTH} directories"
            )));
        }
        let entries = fs::read_dir(directory).and_then(Iterator::collect::<io::Result<Vec<_>>>);
        let mut entries = entries.map_err(|error| cannot_read(&name, &error))?;
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let (path, name) = (entry.path(), entry.file_name());
            let Some(name) = name.to_str() else {
                return Err(Failure::Usage(format!(
                    "the name of '{}' is not UTF-8: rename the file",
                    path.display()
                )));
            };
            let inside = format!("{prefix}{name}");
            let kind = entry.file_type();
            let kind = kind.map_err(|error| cannot_read(&path.display().to_string(), &error))?;
            if kind.is_dir() {
                if inside != ".git" {
                    self.walk(&path, &format!("{inside}/"), depth + 1)?;
                }
            } else if kind.is_file() {
                self.add(&path, inside)?;
            } else {
                self.skipped += 1;
            }
        }
        Ok(())
    }

    fn add(&mut self, path: &Path, inside: String) -> Result<(), Failure> {
        if self.files.len() == MAX_FILES {
            return Err(Failure::Usage(format!(
                "'{}' exceeds the maximum of {MAX_FILES} files per request: \
                 mount large directories with --volume instead",
                path.display()
            )));
        }
        let name = path.display().to_string();
        // The file may have been replaced by a link or a pipe since its type was read.
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(flags.bits().cast_signed())
            .open(path)
            .map_err(|error| cannot_read(&name, &error))?;
        let metadata = file.metadata().map_err(|error| cannot_read(&name, &error))?;
        if !metadata.is_file() {
            self.skipped += 1;
            return Ok(());
        }
        self.budget.check(metadata.len(), &name)?;
        let contents = self.budget.read(file, &name)?;
        self.files.push(SourceFile { path: inside, contents });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn links_and_git_history_of_a_project_are_skipped() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("lib")).unwrap();
        fs::create_dir_all(root.path().join(".git")).unwrap();
        for name in ["main.py", "lib/util.py", ".git/config", ".env"] {
            fs::write(root.path().join(name), name).unwrap();
        }
        symlink("/etc/passwd", root.path().join("secret")).unwrap();
        symlink("/", root.path().join("lib/root")).unwrap();
        let walked = directory(root.path(), &mut Budget::new()).unwrap();
        let paths: Vec<_> = walked.files.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(paths, [".env", "lib/util.py", "main.py"]);
        assert_eq!(walked.files[1].contents, b"lib/util.py");
        assert!(walked.notes[0].starts_with("skipped 2 links"), "{:?}", walked.notes);
    }

    #[test]
    fn reading_stops_when_the_budget_is_spent() {
        let mut budget = Budget { left: 4 };
        assert_eq!(budget.read(&b"abc"[..], "a").unwrap(), b"abc");
        let refusal = budget.read(io::repeat(0), "b").unwrap_err();
        assert!(refusal.message().unwrap().contains("'b'"));
    }

    #[test]
    fn an_unreadable_file_is_named_with_the_reason() {
        let failure = file(Path::new("/no/such/file.py"), &mut Budget::new()).unwrap_err();
        assert_eq!(
            failure.message().unwrap(),
            "sandbox-run: cannot read '/no/such/file.py': no such file"
        );
    }
}
