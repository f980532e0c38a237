//! Collects files from a work directory that a hostile program filled.
//!
//! It starts after every process of the sandbox is dead, from a descriptor of the directory that
//! init opened before the program started. Each name is opened relative to its directory, beneath
//! it, without following links and without leaving the file system. Only regular files are read,
//! and the bytes read count, not the reported size.

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Dir, FileType, Mode, OFlags, ResolveFlags, fstat, openat2};
use rustix::io::Errno;
use sandbox_core::{CollectRule, CollectedFile, InputFile, SkippedFile};

/// Deeper directories are skipped: each level holds a descriptor open.
const MAX_DEPTH: usize = 64;
/// Longer paths are skipped: such a file could not be created again. The kernel's bound, less the
/// directory that the path is joined to.
const MAX_PATH_LEN: usize = 2048;
/// Maximum number of skipped files that are listed.
const MAX_SKIPPED: usize = 100;
/// Maximum number of directory entries, so that a huge directory takes bounded time.
const MAX_NAMES: usize = 200_000;

/// The result of collecting.
#[derive(Debug, Default)]
pub struct Collected {
    /// Collected files, ordered by path.
    pub files: Vec<CollectedFile>,
    /// Matching files that were not collected.
    pub skipped: Vec<SkippedFile>,
    /// Whether there was more than the rule allows.
    pub over_limit: bool,
}

/// Reads the files that match the rule, except input files (`placed`) that did not change.
pub fn collect(work: BorrowedFd<'_>, rule: &CollectRule, placed: &[&InputFile]) -> Collected {
    let mut walk = Walk {
        rule,
        placed,
        found: Collected::default(),
        bytes_left: rule.total.as_u64(),
        names: 0,
    };
    if !rule.globs.is_empty() {
        match open_beneath(work, c".", OFlags::RDONLY | OFlags::DIRECTORY) {
            Ok(top) => walk.directory(&top, "", 0),
            Err(error) => {
                walk.skip("", &format!("the work directory could not be opened: {error}"));
            }
        }
    }
    walk.found.files.sort_by(|left, right| left.path.cmp(&right.path));
    walk.found
}

struct Walk<'a> {
    rule: &'a CollectRule,
    placed: &'a [&'a InputFile],
    found: Collected,
    bytes_left: u64,
    names: usize,
}

impl Walk<'_> {
    fn directory(&mut self, directory: &OwnedFd, prefix: &str, depth: usize) {
        let entries = match Dir::read_from(directory) {
            Ok(entries) => entries,
            Err(error) => return self.skip(prefix, &format!("it could not be listed: {error}")),
        };
        for entry in entries.flatten() {
            let name = entry.file_name();
            if name == c"." || name == c".." {
                continue;
            }
            self.names += 1;
            if self.names > MAX_NAMES || self.found.over_limit {
                self.found.over_limit = true;
                return;
            }
            self.name(directory, prefix, name, depth);
        }
    }

    fn name(&mut self, directory: &OwnedFd, prefix: &str, name: &CStr, depth: usize) {
        let printable = format!("{prefix}{}", name.to_string_lossy());
        if printable.len() > MAX_PATH_LEN {
            return self.skip(prefix, "a path below it is too long");
        }
        let plain = name.to_str().ok().filter(|name| !name.chars().any(char::is_control));
        // Check the type of what was opened, not of the name: O_PATH has no side effects.
        let place = open_beneath(directory.as_fd(), name, OFlags::PATH | OFlags::NOFOLLOW);
        let kind =
            place.and_then(|place| fstat(&place)).map(|stat| FileType::from_raw_mode(stat.st_mode));
        match kind {
            Ok(FileType::Directory) => match plain {
                None => self.skip(&printable, "its name is not plain text"),
                Some(_) if depth >= MAX_DEPTH => self.skip(&printable, "it lies too deep"),
                Some(_) => {
                    match open_beneath(directory.as_fd(), name, OFlags::RDONLY | OFlags::DIRECTORY)
                    {
                        Ok(below) => self.directory(&below, &format!("{printable}/"), depth + 1),
                        Err(error) => {
                            self.skip(&printable, &format!("it could not be opened: {error}"));
                        }
                    }
                }
            },
            _ if !self.fits(&printable) => {}
            Ok(FileType::RegularFile) => match plain {
                None => self.skip(&printable, "its name is not plain text"),
                Some(_) => self.file(directory, name, printable),
            },
            Ok(FileType::Symlink) => self.skip(&printable, "it is a symbolic link"),
            Ok(FileType::Fifo) => self.skip(&printable, "it is a pipe"),
            Ok(FileType::Socket) => self.skip(&printable, "it is a socket"),
            Ok(_) => self.skip(&printable, "it is a device"),
            Err(error) => self.skip(&printable, &format!("it could not be looked at: {error}")),
        }
    }

    fn fits(&self, path: &str) -> bool {
        self.rule.wants(path)
    }

    fn file(&mut self, directory: &OwnedFd, name: &CStr, path: String) {
        if self.is_unchanged(directory, name, &path) {
            return;
        }
        if self.found.files.len() >= self.rule.count {
            self.found.over_limit = true;
            return;
        }
        match read(directory, name, self.bytes_left) {
            Ok(Some((contents, executable))) => {
                self.bytes_left -= contents.len() as u64;
                self.found.files.push(CollectedFile { path, contents, executable });
            }
            Ok(None) => self.found.over_limit = true,
            Err(error) => self.skip(&path, &format!("it could not be read: {error}")),
        }
    }

    fn is_unchanged(&self, directory: &OwnedFd, name: &CStr, path: &str) -> bool {
        let placed = self.placed.iter().find(|placed| placed.path.as_str() == path);
        let Some(placed) = placed else { return false };
        let read = read(directory, name, placed.contents.len() as u64);
        matches!(read, Ok(Some((contents, _))) if contents == placed.contents)
    }

    fn skip(&mut self, path: &str, reason: &str) {
        if self.found.skipped.len() < MAX_SKIPPED {
            let path = path.escape_debug().to_string();
            self.found.skipped.push(SkippedFile { path, reason: reason.to_owned() });
        }
    }
}

/// The content, or `None` if it is larger than allowed.
fn read(directory: &OwnedFd, name: &CStr, most: u64) -> Result<Option<(Vec<u8>, bool)>, Errno> {
    // Non-blocking, in case it is not a regular file any more; the type is checked again below.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = open_beneath(directory.as_fd(), name, flags)?;
    let stat = fstat(&file)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(Errno::INVAL);
    }
    let size = u64::try_from(stat.st_size).unwrap_or(u64::MAX);
    if size > most {
        return Ok(None);
    }
    let size = usize::try_from(size).map_err(|_| Errno::FBIG)?;
    let mut contents = vec![0; size];
    let mut filled = 0;
    while filled < size {
        match rustix::io::read(&file, &mut contents[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
    contents.truncate(filled);
    Ok(Some((contents, stat.st_mode & 0o100 != 0)))
}

pub(crate) fn open_beneath(
    directory: BorrowedFd<'_>,
    name: &CStr,
    flags: OFlags,
) -> Result<OwnedFd, Errno> {
    let resolve = ResolveFlags::BENEATH
        | ResolveFlags::NO_SYMLINKS
        | ResolveFlags::NO_MAGICLINKS
        | ResolveFlags::NO_XDEV;
    // O_PATH|O_NOFOLLOW opens a link itself; NO_SYMLINKS would refuse even that.
    let resolve =
        if flags.contains(OFlags::PATH) { resolve & !ResolveFlags::NO_SYMLINKS } else { resolve };
    openat2(directory, name, flags | OFlags::CLOEXEC, Mode::empty(), resolve)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, mkfifoat, open};
    use sandbox_core::ByteSize;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn rule(glob: &str, total: u64, count: usize) -> CollectRule {
        CollectRule { globs: vec![glob.parse().unwrap()], total: ByteSize::bytes(total), count }
    }

    fn run(folder: &std::path::Path, rule: &CollectRule) -> Collected {
        let work = open(folder, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()).unwrap();
        collect(work.as_fd(), rule, &[])
    }

    #[test]
    fn regular_files_come_back_whole_and_in_order() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("b")).unwrap();
        std::fs::write(folder.path().join("b/two"), b"2").unwrap();
        std::fs::write(folder.path().join("a"), b"\xff1").unwrap();
        std::fs::set_permissions(folder.path().join("a"), PermissionsExt::from_mode(0o755))
            .unwrap();
        let found = run(folder.path(), &rule("**", 100, 10));
        let listed: Vec<_> =
            found.files.iter().map(|file| (file.path.as_str(), file.executable)).collect();
        assert_eq!(listed, [("a", true), ("b/two", false)]);
        assert_eq!(found.files[0].contents, b"\xff1");
        assert!(found.skipped.is_empty() && !found.over_limit);
    }

    #[test]
    fn unchanged_input_files_are_not_collected() {
        let folder = tempfile::tempdir().unwrap();
        let placed: Vec<InputFile> = ["same", "changed"]
            .map(|name| InputFile {
                path: name.parse().unwrap(),
                contents: b"before".to_vec(),
                executable: false,
            })
            .into();
        std::fs::write(folder.path().join("same"), b"before").unwrap();
        std::fs::write(folder.path().join("changed"), b"after!").unwrap();
        let work = open(folder.path(), OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()).unwrap();
        let placed: Vec<&InputFile> = placed.iter().collect();
        let found = collect(work.as_fd(), &rule("**", 100, 10), &placed);
        assert_eq!(found.files.len(), 1);
        assert_eq!(found.files[0].path, "changed");
    }

    #[test]
    fn links_pipes_sockets_and_odd_names_are_listed_and_never_followed() {
        let folder = tempfile::tempdir().unwrap();
        let place = |name: &str| folder.path().join(name);
        symlink("/etc/passwd", place("link")).unwrap();
        symlink("/etc", place("folder-link")).unwrap();
        mkfifoat(CWD, place("pipe"), Mode::from_raw_mode(0o600)).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(place("socket")).unwrap();
        std::fs::write(place("new\nline"), b"x").unwrap();
        let found = run(folder.path(), &rule("**", 1 << 20, 100));
        assert!(found.files.is_empty(), "{:?}", found.files);
        let mut paths: Vec<_> = found.skipped.iter().map(|skipped| skipped.path.as_str()).collect();
        paths.sort_unstable();
        assert_eq!(paths, ["folder-link", "link", "new\\nline", "pipe", "socket"]);
    }

    #[test]
    fn more_than_the_rule_allows_is_reported_and_not_read() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a", "b", "c"] {
            std::fs::write(folder.path().join(name), b"12345").unwrap();
        }
        let found = run(folder.path(), &rule("*", 11, 10));
        assert!(found.over_limit && found.files.len() == 2);
        let found = run(folder.path(), &rule("*", 100, 1));
        assert!(found.over_limit && found.files.len() == 1);
        let sparse = std::fs::File::create(folder.path().join("giant")).unwrap();
        sparse.set_len(1 << 40).unwrap();
        let found = run(folder.path(), &rule("giant", 1 << 20, 10));
        assert!(found.over_limit && found.files.is_empty());
    }
}
