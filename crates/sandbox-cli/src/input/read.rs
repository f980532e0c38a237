use std::fs::{self, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

use super::{SourceFile, open};
use crate::errors::Failure;

/// More than any program and its data that belong into one request: all of it is held in memory.
const MOST_BYTES: u64 = 1 << 30;
/// The library refuses more; stopping here saves reading them all first.
const MOST_FILES: usize = 10_000;
const DEEPEST: usize = 64;

/// How much may still be read.
pub(crate) struct Budget {
    left: u64,
}

/// What was found in a directory.
#[derive(Debug)]
pub(crate) struct Walked {
    pub(crate) files: Vec<SourceFile>,
    pub(crate) notes: Vec<String>,
}

impl Budget {
    pub(crate) fn new() -> Self {
        Self { left: MOST_BYTES }
    }

    /// Reads to the end, or fails when the budget is spent: a device or a pipe may have no end.
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

    /// Refuses what is larger than what may still be read, before it is.
    fn check(&self, size: u64, name: &str) -> Result<(), Failure> {
        if size <= self.left {
            return Ok(());
        }
        Err(Failure::Usage(format!(
            "'{name}' brings the input over the 1G that one request may have: show a large \
             directory with --volume instead"
        )))
    }
}

/// A file that the person named: links are followed, as everywhere on a command line.
pub(crate) fn file(path: &Path, budget: &mut Budget) -> Result<Vec<u8>, Failure> {
    let name = path.display().to_string();
    let input = open::open(path)?;
    budget.check(input.size, &name)?;
    budget.read(input.file, &name)
}

/// The same, as text.
pub(crate) fn read_text(path: &Path) -> Result<String, Failure> {
    let contents = file(path, &mut Budget::new())?;
    String::from_utf8(contents)
        .map_err(|_| Failure::Usage(format!("'{}' is not UTF-8 text", path.display())))
}

/// Everything below a directory, in order of name. Links are not followed, because a project that
/// comes from elsewhere could lead to files that were never meant to go in.
pub(crate) fn directory(root: &Path, budget: &mut Budget) -> Result<Walked, Failure> {
    let mut walk = Walk { files: Vec::new(), left_out: 0, budget };
    walk.enter(root, "", 0)?;
    let notes = match walk.left_out {
        0 => Vec::new(),
        1 => vec![format!("1 link or special file in '{}' was left out", root.display())],
        count => {
            vec![format!("{count} links and special files in '{}' were left out", root.display())]
        }
    };
    Ok(Walked { files: walk.files, notes })
}

struct Walk<'a> {
    files: Vec<SourceFile>,
    left_out: usize,
    budget: &'a mut Budget,
}

impl Walk<'_> {
    fn enter(&mut self, directory: &Path, prefix: &str, depth: usize) -> Result<(), Failure> {
        let name = directory.display().to_string();
        if depth > DEEPEST {
            return Err(Failure::Usage(format!(
                "'{name}' is more than {DEEPEST} directories deep"
            )));
        }
        let entries = fs::read_dir(directory).and_then(Iterator::collect::<io::Result<Vec<_>>>);
        let mut entries = entries.map_err(|error| cannot_read(&name, &error))?;
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let (path, name) = (entry.path(), entry.file_name());
            let Some(name) = name.to_str() else {
                return Err(Failure::Usage(format!(
                    "the name of '{}' is not UTF-8 text",
                    path.display()
                )));
            };
            let inside = format!("{prefix}{name}");
            let kind = entry.file_type();
            let kind = kind.map_err(|error| cannot_read(&path.display().to_string(), &error))?;
            if kind.is_dir() {
                if inside != ".git" {
                    self.enter(&path, &format!("{inside}/"), depth + 1)?;
                }
            } else if kind.is_file() {
                self.add(&path, inside)?;
            } else {
                self.left_out += 1;
            }
        }
        Ok(())
    }

    fn add(&mut self, path: &Path, inside: String) -> Result<(), Failure> {
        if self.files.len() == MOST_FILES {
            return Err(Failure::Usage(format!(
                "there are more than {MOST_FILES} files, the most one request may have: show a \
                 large directory with --volume instead"
            )));
        }
        let name = path.display().to_string();
        // What was a file a moment ago may be a link or a pipe by now.
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(flags.bits().cast_signed())
            .open(path)
            .map_err(|error| cannot_read(&name, &error))?;
        let metadata = file.metadata().map_err(|error| cannot_read(&name, &error))?;
        if !metadata.is_file() {
            self.left_out += 1;
            return Ok(());
        }
        self.budget.check(metadata.len(), &name)?;
        let contents = self.budget.read(file, &name)?;
        self.files.push(SourceFile { path: inside, contents });
        Ok(())
    }
}

pub(super) fn cannot_read(name: &str, error: &io::Error) -> Failure {
    let reason = match error.kind() {
        io::ErrorKind::NotFound => "there is no such file".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        _ => error.to_string(),
    };
    Failure::Usage(format!("cannot read '{name}': {reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_project_goes_in_without_its_links_and_history() {
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
        assert!(walked.notes[0].starts_with("2 links"), "{:?}", walked.notes);
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
            "sandbox-run: cannot read '/no/such/file.py': there is no such file"
        );
    }
}
