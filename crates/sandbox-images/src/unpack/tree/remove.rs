use rustix::fs::{AtFlags, Dir, FileType, statat, unlinkat};
use rustix::io::Errno;

use super::{EntryError, Location, Tree, open_directory};

impl Tree {
    /// Removes a file of earlier layers. A missing one is not an error: squashed layers contain whiteouts of files
    /// that never existed.
    pub(in crate::unpack) fn remove(
        &self,
        parent: &[&[u8]],
        name: &[u8],
    ) -> Result<(), EntryError> {
        let Some(directory) = self.find(parent)? else { return Ok(()) };
        let inode = rustix::fs::fstat(&directory)?.st_ino;
        self.remove_lower(&Location { directory, inode, name }).map(drop)
    }

    /// Removes the files of earlier layers in a directory.
    pub(in crate::unpack) fn remove_contents(&self, path: &[&[u8]]) -> Result<(), EntryError> {
        let Some(found) = self.find(path)? else { return Ok(()) };
        let inode = rustix::fs::fstat(&found)?.st_ino;
        // The descriptor is `O_PATH`; the name `.` lets the directory be opened for reading.
        let itself = Location { directory: found, inode, name: b"." };
        self.remove_lower_contents(&itself).map(drop)
    }

    /// Removes a file and all below it, except what the current layer created. Returns true if nothing is left.
    pub(super) fn remove_lower(&self, location: &Location<'_>) -> Result<bool, EntryError> {
        let kind = match statat(&location.directory, location.name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => return Ok(true),
            found => FileType::from_raw_mode(found?.st_mode),
        };
        let is_current = self.created.contains_key(&location.key());
        let flags = if kind == FileType::Directory {
            if !self.remove_lower_contents(location)? {
                return Ok(false);
            }
            AtFlags::REMOVEDIR
        } else {
            AtFlags::empty()
        };
        if !is_current {
            unlinkat(&location.directory, location.name, flags)?;
        }
        Ok(!is_current)
    }

    /// Does the same for the contents of a directory. The depth of the recursion is bounded by that of the tree.
    fn remove_lower_contents(&self, location: &Location<'_>) -> Result<bool, EntryError> {
        let directory = open_directory(location)?;
        let inode = rustix::fs::fstat(&directory)?.st_ino;
        let mut names = Vec::new();
        for entry in Dir::read_from(&directory)? {
            let name = entry?.file_name().to_bytes().to_vec();
            if name != b"." && name != b".." {
                names.push(name);
            }
        }
        let mut is_empty = true;
        for name in names {
            let directory = directory.try_clone().map_err(EntryError::Unreadable)?;
            is_empty &= self.remove_lower(&Location { directory, inode, name: &name })?;
        }
        Ok(is_empty)
    }
}
