use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{
    AtFlags, Gid, Mode, OFlags, ResolveFlags, Timespec, Timestamps, UTIME_OMIT, Uid, chownat,
    fchmod, fchown, futimens, mkdirat, openat2, symlinkat, utimensat,
};

use super::format::{Entry, Kind, SnapshotReader};

/// Fills the work directory of a fresh sandbox. Runs in a process in the sandbox's cgroup, so the
/// files' memory is charged to the sandbox. They belong to `owner`, an ID in this process's user
/// namespace.
///
/// Although snapshots are trusted, no link in them is followed: each directory is opened beneath
/// the top.
pub(crate) fn restore(content: File, work: BorrowedFd<'_>, owner: u32) -> io::Result<()> {
    let mut reader = SnapshotReader::new(content)?;
    let mut parent: Option<(Vec<u8>, OwnedFd)> = None;
    let mut directories = Vec::new();
    while let Some(entry) = reader.next_entry()? {
        let (above, name) = split(&entry.path);
        if parent.as_ref().is_none_or(|(path, _)| path != above) {
            parent = Some((above.to_vec(), open_directory(work, above)?));
        }
        let directory = parent.as_ref().map_or(work, |(_, directory)| directory.as_fd());
        let name = name.to_vec();
        make(directory, &name, &entry, owner, &mut reader)?;
        if entry.kind == Kind::Directory {
            directories.push(entry);
        }
    }
    // Last and children first: filling a directory changes its time, and its mode may forbid it.
    for entry in directories.iter().rev() {
        let directory = open_directory(work, &entry.path)?;
        futimens(&directory, &times(entry))?;
        fchmod(&directory, Mode::from_raw_mode(entry.mode))?;
    }
    Ok(())
}

fn make(
    directory: BorrowedFd<'_>,
    name: &[u8],
    entry: &Entry,
    owner: u32,
    content: &mut dyn Read,
) -> io::Result<()> {
    let (user, group) = (Some(Uid::from_raw(owner)), Some(Gid::from_raw(owner)));
    match entry.kind {
        Kind::Directory => {
            mkdirat(directory, name, Mode::from_raw_mode(0o700))?;
            chownat(directory, name, user, group, AtFlags::SYMLINK_NOFOLLOW)?;
        }
        Kind::File => {
            let flags =
                OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let mode = Mode::from_raw_mode(0o600);
            let file = rustix::fs::openat(directory, name, flags, mode)?;
            let mut file = File::from(file);
            io::copy(content, &mut file)?;
            fchown(&file, user, group)?;
            fchmod(&file, Mode::from_raw_mode(entry.mode))?;
            futimens(&file, &times(entry))?;
        }
        Kind::Link => {
            let mut target = Vec::new();
            content.read_to_end(&mut target)?;
            symlinkat(target, directory, name)?;
            chownat(directory, name, user, group, AtFlags::SYMLINK_NOFOLLOW)?;
            utimensat(directory, name, &times(entry), AtFlags::SYMLINK_NOFOLLOW)?;
        }
    }
    Ok(())
}

fn open_directory(top: BorrowedFd<'_>, path: &[u8]) -> io::Result<OwnedFd> {
    let path = if path.is_empty() { b"." } else { path };
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(openat2(top, path, flags, Mode::empty(), resolve)?)
}

fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(slash) => (&path[..slash], &path[slash + 1..]),
        None => (&[], path),
    }
}

fn times(entry: &Entry) -> Timestamps {
    Timestamps {
        last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        last_modification: Timespec {
            tv_sec: entry.modified.0,
            tv_nsec: entry.modified.1.min(999_999_999).into(),
        },
    }
}
