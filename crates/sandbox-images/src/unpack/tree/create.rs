use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;

use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, Timespec, Timestamps, UTIME_OMIT, fchmod, futimens, linkat,
    statat, symlinkat, utimensat,
};
use rustix::io::Errno;

use super::{Created, EntryError, Location, Tree, open_beneath, open_directory, set_mode};

/// Lets the owner of the store read every file in it.
const OWNER_READABLE: u32 = 0o400;

impl Tree {
    /// Creates a directory, or sets the mode of an existing one.
    pub(in crate::unpack) fn create_directory(
        &mut self,
        location: &Location<'_>,
        mode: u32,
    ) -> Result<(), EntryError> {
        if kind_of(location)? == Some(FileType::Directory) {
            set_mode(&open_directory(location)?, mode)?;
            self.record(location, Created::Directory);
            return Ok(());
        }
        self.remove_existing(location, Created::Directory)?;
        self.mkdir(location, mode).map(drop)
    }

    pub(in crate::unpack) fn create_file(
        &mut self,
        location: &Location<'_>,
        mode: u32,
        modified: i64,
        size: u64,
        content: &mut dyn Read,
    ) -> Result<(), EntryError> {
        self.remove_existing(location, Created::File)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        let initial_mode = Mode::from_raw_mode(0o600);
        let file = open_beneath(&location.directory, location.name, flags, initial_mode)?;
        self.record(location, Created::File);
        let file = copy(content, file, size)?;
        fchmod(&file, Mode::from_raw_mode(mode | OWNER_READABLE))?;
        // Interpreters compare the times of precompiled files with those of their sources.
        futimens(&file, &times(modified))?;
        Ok(())
    }

    /// Creates a symbolic link. Its target is not checked: it is only followed inside a sandbox.
    pub(in crate::unpack) fn create_symlink(
        &mut self,
        location: &Location<'_>,
        target: &[u8],
        modified: i64,
    ) -> Result<(), EntryError> {
        self.remove_existing(location, Created::Symlink)?;
        symlinkat(target, &location.directory, location.name)?;
        self.record(location, Created::Symlink);
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        utimensat(&location.directory, location.name, &times(modified), flags)?;
        Ok(())
    }

    pub(in crate::unpack) fn create_hard_link(
        &mut self,
        location: &Location<'_>,
        target: &[&[u8]],
    ) -> Result<(), EntryError> {
        let missing = || EntryError::from("is a hard link to a file that is not in the image");
        let (name, parent) = target.split_last().ok_or_else(missing)?;
        let directory = self.find(parent)?.ok_or_else(missing)?;
        let found = match statat(&directory, *name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => return Err(missing()),
            found => found?,
        };
        if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
            return Err("is a hard link to something other than a file".into());
        }
        self.remove_existing(location, Created::File)?;
        match linkat(&directory, *name, &location.directory, location.name, AtFlags::empty()) {
            // The removed name was the target: a link to itself.
            Err(Errno::NOENT) => return Err(missing()),
            linked => linked?,
        }
        self.record(location, Created::File);
        Ok(())
    }

    /// Removes an existing file of this name: one of an earlier layer, or one of the same type of this layer.
    fn remove_existing(
        &mut self,
        location: &Location<'_>,
        expected: Created,
    ) -> Result<(), EntryError> {
        match self.created.remove(&location.key()) {
            Some(created) if created != expected => {
                return Err("occurs twice with different types".into());
            }
            _ => {}
        }
        if self.remove_lower(location)? {
            return Ok(());
        }
        Err("replaces a directory to which the same layer added files".into())
    }
}

fn kind_of(location: &Location<'_>) -> Result<Option<FileType>, Errno> {
    match statat(&location.directory, location.name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(found) => Ok(Some(FileType::from_raw_mode(found.st_mode))),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Copies exactly `size` bytes.
fn copy(content: &mut dyn Read, file: OwnedFd, size: u64) -> Result<std::fs::File, EntryError> {
    let mut file = std::fs::File::from(file);
    let mut buffer = vec![0; 1 << 16];
    let mut left = size;
    while left > 0 {
        let count = usize::try_from(left).map_or(buffer.len(), |left| left.min(buffer.len()));
        match content.read(&mut buffer[..count]) {
            Ok(0) => return Err(EntryError::Unreadable(io::ErrorKind::UnexpectedEof.into())),
            Ok(count) => {
                left -= count as u64;
                file.write_all(&buffer[..count]).map_err(|error| {
                    EntryError::Failed(Errno::from_io_error(&error).unwrap_or(Errno::IO))
                })?;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(EntryError::Unreadable(error)),
        }
    }
    Ok(file)
}

fn times(modified: i64) -> Timestamps {
    Timestamps {
        last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        last_modification: Timespec { tv_sec: modified, tv_nsec: 0 },
    }
}
