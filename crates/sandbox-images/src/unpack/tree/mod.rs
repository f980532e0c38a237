//! The root directory under construction, and which of its files the current layer created.

mod create;
mod remove;

use std::borrow::Cow;
use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{Mode, OFlags, ResolveFlags, fstat, mkdirat, openat2};
use rustix::io::Errno;

/// A root that only this process writes to. Its names are untrusted; none is followed out of it.
#[derive(Debug)]
pub(super) struct Tree {
    root: OwnedFd,
    /// The depth of each directory below the root. It is stored because a short path can lead deep through links.
    depths: HashMap<Inode, usize>,
    max_depth: usize,
    /// What the current layer created, by directory and name. Whiteouts apply to earlier layers only, wherever in the
    /// archive they are.
    created: HashMap<(Inode, Vec<u8>), Created>,
}

/// The inode number of a directory. It is not reused while the directory contains a file of the current layer.
type Inode = u64;

/// The type of a created file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Created {
    File,
    Directory,
    Symlink,
}

/// A name in an existing directory.
#[derive(Debug)]
pub(super) struct Location<'a> {
    directory: OwnedFd,
    inode: Inode,
    name: &'a [u8],
}

/// Why an entry was not created.
#[derive(Debug)]
pub(super) enum EntryError {
    /// The entry is not allowed, for this reason.
    Rejected(Cow<'static, str>),
    /// The content cannot be read.
    Unreadable(io::Error),
    /// A system call failed.
    Failed(Errno),
}

impl EntryError {
    pub(super) fn too_deep(max_depth: usize) -> Self {
        Self::Rejected(format!("is nested deeper than {max_depth} directories").into())
    }
}

/// The mode of directories that have no entry of their own.
const DEFAULT_DIRECTORY_MODE: u32 = 0o755;

impl Tree {
    pub(super) fn new(root: OwnedFd, max_depth: usize) -> Result<Self, Errno> {
        let depths = HashMap::from([(fstat(&root)?.st_ino, 0)]);
        Ok(Self { root, depths, max_depth, created: HashMap::new() })
    }

    /// Starts the next layer.
    pub(super) fn begin_layer(&mut self) {
        self.created.clear();
    }

    /// Opens the parent directory of a name. Creates it if it does not exist.
    pub(super) fn locate<'a>(
        &mut self,
        parent: &[&[u8]],
        name: &'a [u8],
    ) -> Result<Location<'a>, EntryError> {
        let directory = self.directory(parent)?;
        let inode = fstat(&directory)?.st_ino;
        Ok(Location { directory, inode, name })
    }

    fn directory(&mut self, path: &[&[u8]]) -> Result<OwnedFd, EntryError> {
        if let Some(found) = self.find(path)? {
            return Ok(found);
        }
        let Some((name, parent)) = path.split_last() else {
            return Err(EntryError::Failed(Errno::NOENT));
        };
        let location = self.locate(parent, name)?;
        self.mkdir(&location, DEFAULT_DIRECTORY_MODE).map_err(|error| match error {
            // The name exists, but the lookup found nothing: it is a dangling link.
            EntryError::Failed(Errno::EXIST) => {
                "is below a link whose target is not in the image".into()
            }
            error => error,
        })
    }

    /// Opens a directory. Links are resolved with the image as `/`.
    fn find(&self, path: &[&[u8]]) -> Result<Option<OwnedFd>, EntryError> {
        let path = if path.is_empty() { b".".to_vec() } else { path.join(&b'/') };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_XDEV;
        loop {
            match openat2(&self.root, path.as_slice(), flags, Mode::empty(), resolve) {
                Ok(found) => return Ok(Some(found)),
                Err(Errno::NOENT) => return Ok(None),
                // Something on this host was renamed during the lookup.
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(Errno::NOTDIR) => {
                    return Err("is below a file that is not a directory".into());
                }
                Err(Errno::LOOP) => return Err("is below a loop of links".into()),
                Err(Errno::NAMETOOLONG) => {
                    return Err("is below a link whose target is too long".into());
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn mkdir(&mut self, location: &Location<'_>, mode: u32) -> Result<OwnedFd, EntryError> {
        let depth = self.depths.get(&location.inode).map_or(self.max_depth, |depth| depth + 1);
        if depth > self.max_depth {
            return Err(EntryError::too_deep(self.max_depth));
        }
        mkdirat(&location.directory, location.name, Mode::from_raw_mode(0o700))?;
        let directory = open_directory(location)?;
        set_mode(&directory, mode)?;
        self.depths.insert(fstat(&directory)?.st_ino, depth);
        self.record(location, Created::Directory);
        Ok(directory)
    }

    fn record(&mut self, location: &Location<'_>, what: Created) {
        self.created.insert(location.key(), what);
    }
}

impl Location<'_> {
    fn key(&self) -> (Inode, Vec<u8>) {
        (self.inode, self.name.to_vec())
    }
}

/// Opens a directory, but not through a link.
fn open_directory(location: &Location<'_>) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    open_beneath(&location.directory, location.name, flags, Mode::empty())
}

fn open_beneath(
    directory: impl AsFd,
    name: &[u8],
    flags: OFlags,
    mode: Mode,
) -> Result<OwnedFd, Errno> {
    let resolve = ResolveFlags::BENEATH
        | ResolveFlags::NO_SYMLINKS
        | ResolveFlags::NO_MAGICLINKS
        | ResolveFlags::NO_XDEV;
    openat2(directory, name, flags | OFlags::NOFOLLOW | OFlags::CLOEXEC, mode, resolve)
}

/// Sets the mode of a directory, but always lets the owner of the store list and remove it.
fn set_mode(directory: &OwnedFd, mode: u32) -> Result<(), Errno> {
    rustix::fs::fchmod(directory, Mode::from_raw_mode(mode | 0o700))
}
