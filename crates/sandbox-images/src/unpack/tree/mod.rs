//! The root that is being made, and who made what in it.

mod put;
mod remove;

use std::borrow::Cow;
use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{Mode, OFlags, ResolveFlags, fstat, mkdirat, openat2};
use rustix::io::Errno;

/// A root that only this process writes to. Names come from strangers; none is followed out of it.
#[derive(Debug)]
pub(super) struct Tree {
    root: OwnedFd,
    /// How many directories there are from the root to each. It is kept for what was really made, because
    /// through links a short path can go deeper than it looks.
    depths: HashMap<Inode, usize>,
    deepest: usize,
    /// What this layer made, by the directory it is in. Whiteouts are about earlier layers only, wherever in the
    /// archive they stand.
    made: HashMap<(Inode, Vec<u8>), Made>,
}

/// Number of a directory. None is reused while something of this layer is in it.
type Inode = u64;

/// What stands behind a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Made {
    File,
    Directory,
    Link,
}

/// A name in a directory that is there.
#[derive(Debug)]
pub(super) struct Place<'a> {
    directory: OwnedFd,
    inode: Inode,
    name: &'a [u8],
}

/// Why an entry was not made.
#[derive(Debug)]
pub(super) enum Problem {
    /// It is not taken, for this reason.
    Refused(Cow<'static, str>),
    /// Its content could not be read.
    Unreadable(io::Error),
    /// The kernel said no.
    Failed(Errno),
}

impl Problem {
    pub(super) fn too_deep(deepest: usize) -> Self {
        Self::Refused(format!("lies deeper than {deepest} directories").into())
    }
}

/// For directories that no entry says anything about.
const USUAL_MODE: u32 = 0o755;

impl Tree {
    pub(super) fn new(root: OwnedFd, deepest: usize) -> Result<Self, Errno> {
        let depths = HashMap::from([(fstat(&root)?.st_ino, 0)]);
        Ok(Self { root, depths, deepest, made: HashMap::new() })
    }

    /// From here on, what is there was made by earlier layers.
    pub(super) fn begin_layer(&mut self) {
        self.made.clear();
    }

    /// Finds the directory for a name, and makes it if nobody did.
    pub(super) fn place<'a>(
        &mut self,
        above: &[&[u8]],
        name: &'a [u8],
    ) -> Result<Place<'a>, Problem> {
        let directory = self.directory(above)?;
        let inode = fstat(&directory)?.st_ino;
        Ok(Place { directory, inode, name })
    }

    fn directory(&mut self, path: &[&[u8]]) -> Result<OwnedFd, Problem> {
        if let Some(found) = self.find(path)? {
            return Ok(found);
        }
        let Some((name, above)) = path.split_last() else {
            return Err(Problem::Failed(Errno::NOENT));
        };
        let place = self.place(above, name)?;
        self.make_directory(&place, USUAL_MODE).map_err(|problem| match problem {
            // The kernel found nothing behind it a moment ago.
            Problem::Failed(Errno::EXIST) => {
                "lies below a link that leads nowhere in the image".into()
            }
            problem => problem,
        })
    }

    /// The directory that a path leads to, links on the way resolved as if the image were the whole world.
    fn find(&self, path: &[&[u8]]) -> Result<Option<OwnedFd>, Problem> {
        let path = if path.is_empty() { b".".to_vec() } else { path.join(&b'/') };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_XDEV;
        loop {
            match openat2(&self.root, path.as_slice(), flags, Mode::empty(), resolve) {
                Ok(found) => return Ok(Some(found)),
                Err(Errno::NOENT) => return Ok(None),
                // Something on this machine was renamed while the kernel looked.
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(Errno::NOTDIR) => {
                    return Err("lies below something that is no directory".into());
                }
                Err(Errno::LOOP) => return Err("lies below links that lead in a circle".into()),
                Err(Errno::NAMETOOLONG) => return Err("lies below a link that is too long".into()),
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn make_directory(&mut self, place: &Place<'_>, mode: u32) -> Result<OwnedFd, Problem> {
        let depth = self.depths.get(&place.inode).map_or(self.deepest, |depth| depth + 1);
        if depth > self.deepest {
            return Err(Problem::too_deep(self.deepest));
        }
        mkdirat(&place.directory, place.name, Mode::from_raw_mode(0o700))?;
        let directory = open_directory(place)?;
        set_mode(&directory, mode)?;
        self.depths.insert(fstat(&directory)?.st_ino, depth);
        self.remember(place, Made::Directory);
        Ok(directory)
    }

    fn remember(&mut self, place: &Place<'_>, what: Made) {
        self.made.insert(place.key(), what);
    }
}

impl Place<'_> {
    fn key(&self) -> (Inode, Vec<u8>) {
        (self.inode, self.name.to_vec())
    }
}

/// Opens the directory that has this very name, and no link.
fn open_directory(place: &Place<'_>) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    open_beneath(&place.directory, place.name, flags, Mode::empty())
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

/// Whoever owns the store can always list and remove its directories.
fn set_mode(directory: &OwnedFd, mode: u32) -> Result<(), Errno> {
    rustix::fs::fchmod(directory, Mode::from_raw_mode(mode | 0o700))
}
