use rustix::fs::{AtFlags, Dir, FileType, statat, unlinkat};
use rustix::io::Errno;

use super::{Place, Problem, Tree, open_directory};

impl Tree {
    /// Removes what earlier layers put behind a name. What this layer made stays, and what was never there is no
    /// mistake: layers that were made one have such names.
    pub(in crate::unpack) fn remove(&self, above: &[&[u8]], name: &[u8]) -> Result<(), Problem> {
        let Some(directory) = self.find(above)? else { return Ok(()) };
        let inode = rustix::fs::fstat(&directory)?.st_ino;
        self.clear(&Place { directory, inode, name }).map(drop)
    }

    /// Removes what earlier layers put into a directory.
    pub(in crate::unpack) fn empty(&self, path: &[&[u8]]) -> Result<(), Problem> {
        let Some(found) = self.find(path)? else { return Ok(()) };
        let inode = rustix::fs::fstat(&found)?.st_ino;
        // What was found is open for names only; this opens the same directory for its list.
        let itself = Place { directory: found, inode, name: b"." };
        self.clear_inside(&itself).map(drop)
    }

    /// Removes what has a name, but for what this layer made. True if nothing is left.
    pub(super) fn clear(&self, place: &Place<'_>) -> Result<bool, Problem> {
        let kind = match statat(&place.directory, place.name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => return Ok(true),
            found => FileType::from_raw_mode(found?.st_mode),
        };
        let is_ours = self.made.contains_key(&place.key());
        let flags = if kind == FileType::Directory {
            if !self.clear_inside(place)? {
                return Ok(false);
            }
            AtFlags::REMOVEDIR
        } else {
            AtFlags::empty()
        };
        if !is_ours {
            unlinkat(&place.directory, place.name, flags)?;
        }
        Ok(!is_ours)
    }

    /// True if nothing is left in the directory. It is as deep as the tree at most, and so are the calls.
    fn clear_inside(&self, place: &Place<'_>) -> Result<bool, Problem> {
        let directory = open_directory(place)?;
        let inode = rustix::fs::fstat(&directory)?.st_ino;
        let mut names = Vec::new();
        for entry in Dir::read_from(&directory)? {
            let name = entry?.file_name().to_bytes().to_vec();
            if name != b"." && name != b".." {
                names.push(name);
            }
        }
        let mut nothing_left = true;
        for name in names {
            let directory = directory.try_clone().map_err(Problem::Unreadable)?;
            nothing_left &= self.clear(&Place { directory, inode, name: &name })?;
        }
        Ok(nothing_left)
    }
}
