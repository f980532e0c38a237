//! Reads, lists and removes files in the work directory of a running sandbox.
//!
//! Programs may change the directory at the same time. So every name is opened relative to its
//! directory, beneath it, without following links and without leaving the file system, and nothing
//! is opened in a way that blocks or has side effects.

use std::ffi::{CStr, CString};
use std::io::Read as _;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use rustix::fs::{
    AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags, fstat, openat2, statat, unlinkat,
};
use rustix::io::Errno;
use sandbox_core::{DirectoryEntry, RelativePath};

/// Each level of a removed directory holds a descriptor open.
const MAX_DEPTH: usize = 64;
/// Maximum number of names in a listing, and of names that one call removes.
const MAX_NAMES: usize = 100_000;

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY);

/// Reads a regular file; `Errno::FBIG` if it is larger than this.
pub fn read(work: BorrowedFd<'_>, path: &RelativePath, max_bytes: u64) -> Result<Vec<u8>, Errno> {
    // Non-blocking, in case it is a pipe; the type is checked before anything is read.
    let file = open(work, path.as_str(), OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK)?;
    let stat = fstat(&file)?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => {}
        FileType::Directory => return Err(Errno::ISDIR),
        _ => return Err(Errno::INVAL),
    }
    let mut contents = Vec::new();
    // It may grow meanwhile.
    let file = std::fs::File::from(file);
    let read = file.take(max_bytes.saturating_add(1)).read_to_end(&mut contents);
    read.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    if contents.len() as u64 > max_bytes { Err(Errno::FBIG) } else { Ok(contents) }
}

/// Lists a directory by name; `None` is the work directory.
pub fn list(
    work: BorrowedFd<'_>,
    path: Option<&RelativePath>,
) -> Result<Vec<DirectoryEntry>, Errno> {
    let directory = open(work, path.map_or(".", RelativePath::as_str), DIRECTORY)?;
    let mut entries = Vec::new();
    for name in names(&directory)? {
        match statat(&directory, &name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => entries.push(DirectoryEntry {
                name: name.into_bytes(),
                mode: stat.st_mode,
                size: u64::try_from(stat.st_size).unwrap_or(0),
            }),
            // A program removed it meanwhile.
            Err(Errno::NOENT) => {}
            Err(error) => return Err(error),
        }
    }
    entries.sort_by(|left, right| left.name.cmp(&right.name));
    Ok(entries)
}

/// Removes a file, or a directory with everything below it. A link is removed itself.
pub fn remove(work: BorrowedFd<'_>, path: &RelativePath) -> Result<(), Errno> {
    let text = path.as_str();
    let parent = text.rsplit_once('/').map_or(".", |(parent, _)| parent);
    let parent = open(work, parent, DIRECTORY)?;
    let name = CString::new(path.file_name()).map_err(|_| Errno::INVAL)?;
    let mut left = MAX_NAMES;
    remove_in(parent.as_fd(), &name, 0, &mut left)
}

fn remove_in(
    directory: BorrowedFd<'_>,
    name: &CStr,
    depth: usize,
    left: &mut usize,
) -> Result<(), Errno> {
    if depth > MAX_DEPTH {
        return Err(Errno::NAMETOOLONG);
    }
    *left = left.checked_sub(1).ok_or(Errno::TOOBIG)?;
    match unlinkat(directory, name, AtFlags::empty()) {
        Err(Errno::ISDIR | Errno::PERM) => {}
        other => return other,
    }
    let inner = open_name(directory, name, DIRECTORY)?;
    for name in names(&inner)? {
        match remove_in(inner.as_fd(), &name, depth + 1, left) {
            // A program removed it meanwhile.
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(error),
        }
    }
    unlinkat(directory, name, AtFlags::REMOVEDIR)
}

fn names(directory: &OwnedFd) -> Result<Vec<CString>, Errno> {
    let mut names = Vec::new();
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        if name == c"." || name == c".." {
            continue;
        }
        if names.len() >= MAX_NAMES {
            return Err(Errno::TOOBIG);
        }
        names.push(name.to_owned());
    }
    Ok(names)
}

fn open(directory: BorrowedFd<'_>, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
    open_name(directory, &CString::new(path).map_err(|_| Errno::INVAL)?, flags)
}

fn open_name(directory: BorrowedFd<'_>, path: &CStr, flags: OFlags) -> Result<OwnedFd, Errno> {
    let resolve = ResolveFlags::BENEATH
        | ResolveFlags::NO_SYMLINKS
        | ResolveFlags::NO_MAGICLINKS
        | ResolveFlags::NO_XDEV;
    openat2(directory, path, flags | OFlags::CLOEXEC, Mode::empty(), resolve)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, mkfifoat};
    use std::os::unix::fs::symlink;

    fn path(text: &str) -> RelativePath {
        text.parse().unwrap()
    }

    /// A work directory, and beside it a directory with a file that must not be reached.
    fn work() -> (tempfile::TempDir, OwnedFd) {
        let folder = tempfile::tempdir().unwrap();
        for name in ["work", "work/sub", "outside"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        for name in ["work/file", "work/sub/file", "outside/file"] {
            std::fs::write(folder.path().join(name), "text").unwrap();
        }
        symlink("../outside", folder.path().join("work/link")).unwrap();
        mkfifoat(CWD, folder.path().join("work/pipe"), Mode::from_raw_mode(0o600)).unwrap();
        let work = rustix::fs::open(folder.path().join("work"), DIRECTORY, Mode::empty()).unwrap();
        (folder, work)
    }

    #[test]
    fn regular_files_are_read_up_to_the_limit() {
        let (_folder, work) = work();
        for (name, max_bytes, expected) in [
            ("file", 4, Ok(b"text".to_vec())),
            ("sub/file", 100, Ok(b"text".to_vec())),
            ("file", 3, Err(Errno::FBIG)),
            ("none", 100, Err(Errno::NOENT)),
            ("sub", 100, Err(Errno::ISDIR)),
            ("pipe", 100, Err(Errno::INVAL)),
            ("link", 100, Err(Errno::LOOP)),
            ("link/file", 100, Err(Errno::LOOP)),
        ] {
            assert_eq!(read(work.as_fd(), &path(name), max_bytes), expected, "{name}");
        }
    }

    #[test]
    fn a_listing_shows_what_is_there_and_follows_no_link() {
        let (_folder, work) = work();
        let names = |path: Option<&str>| {
            let path = path.map(|text| text.parse().unwrap());
            let entries = list(work.as_fd(), path.as_ref())?;
            let names = entries.into_iter().map(|entry| String::from_utf8(entry.name).unwrap());
            Ok::<_, Errno>(names.collect::<Vec<_>>())
        };
        assert_eq!(names(None).unwrap(), ["file", "link", "pipe", "sub"]);
        assert_eq!(names(Some("sub")).unwrap(), ["file"]);
        assert!(matches!(names(Some("link")), Err(Errno::LOOP | Errno::NOTDIR)));
    }

    #[test]
    fn directories_are_removed_with_their_contents_and_links_by_themselves() {
        let (folder, work) = work();
        symlink("../../outside", folder.path().join("work/sub/link")).unwrap();
        assert_eq!(remove(work.as_fd(), &path("link/file")), Err(Errno::LOOP));
        for name in ["link", "sub", "pipe", "file"] {
            remove(work.as_fd(), &path(name)).unwrap();
        }
        assert_eq!(list(work.as_fd(), None).unwrap(), []);
        assert!(folder.path().join("outside/file").exists());
        assert_eq!(remove(work.as_fd(), &path("file")), Err(Errno::NOENT));
    }
}
