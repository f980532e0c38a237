use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;

use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, Timespec, Timestamps, UTIME_OMIT, fchmod, futimens, linkat,
    statat, symlinkat, utimensat,
};
use rustix::io::Errno;

use super::{Made, Place, Problem, Tree, open_beneath, open_directory, set_mode};

/// Whoever owns the store can read every file in it.
const ALWAYS_READABLE: u32 = 0o400;

impl Tree {
    /// A directory that is there stays, with all that is in it.
    pub(in crate::unpack) fn put_directory(
        &mut self,
        place: &Place<'_>,
        mode: u32,
    ) -> Result<(), Problem> {
        if kind_of(place)? == Some(FileType::Directory) {
            set_mode(&open_directory(place)?, mode)?;
            self.remember(place, Made::Directory);
            return Ok(());
        }
        self.make_room(place, Made::Directory)?;
        self.make_directory(place, mode).map(drop)
    }

    pub(in crate::unpack) fn put_file(
        &mut self,
        place: &Place<'_>,
        mode: u32,
        modified: i64,
        size: u64,
        content: &mut dyn Read,
    ) -> Result<(), Problem> {
        self.make_room(place, Made::File)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        let mode_at_first = Mode::from_raw_mode(0o600);
        let file = open_beneath(&place.directory, place.name, flags, mode_at_first)?;
        self.remember(place, Made::File);
        let file = copy(content, file, size)?;
        fchmod(&file, Mode::from_raw_mode(mode | ALWAYS_READABLE))?;
        // What was compiled ahead is compared with the times of its sources.
        futimens(&file, &times(modified))?;
        Ok(())
    }

    /// A link is only text here: where it leads is a matter of whoever follows it, inside a sandbox.
    pub(in crate::unpack) fn put_symlink(
        &mut self,
        place: &Place<'_>,
        target: &[u8],
        modified: i64,
    ) -> Result<(), Problem> {
        self.make_room(place, Made::Link)?;
        symlinkat(target, &place.directory, place.name)?;
        self.remember(place, Made::Link);
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        utimensat(&place.directory, place.name, &times(modified), flags)?;
        Ok(())
    }

    pub(in crate::unpack) fn put_hard_link(
        &mut self,
        place: &Place<'_>,
        target: &[&[u8]],
    ) -> Result<(), Problem> {
        let missing = || Problem::from("is a hard link to what is not in the image");
        let (name, above) = target.split_last().ok_or_else(missing)?;
        let directory = self.find(above)?.ok_or_else(missing)?;
        let found = match statat(&directory, *name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => return Err(missing()),
            found => found?,
        };
        if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
            return Err("is a hard link to something that is no file".into());
        }
        self.make_room(place, Made::File)?;
        match linkat(&directory, *name, &place.directory, place.name, AtFlags::empty()) {
            // It was a link to itself.
            Err(Errno::NOENT) => return Err(missing()),
            linked => linked?,
        }
        self.remember(place, Made::File);
        Ok(())
    }

    /// Removes what has the name, so that something of another layer, or the same thing again, can be made.
    fn make_room(&mut self, place: &Place<'_>, wanted: Made) -> Result<(), Problem> {
        match self.made.remove(&place.key()) {
            Some(made) if made != wanted => {
                return Err("is there twice, as different things".into());
            }
            _ => {}
        }
        if self.clear(place)? {
            return Ok(());
        }
        Err("takes the place of a directory that the same layer put something in".into())
    }
}

fn kind_of(place: &Place<'_>) -> Result<Option<FileType>, Errno> {
    match statat(&place.directory, place.name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(found) => Ok(Some(FileType::from_raw_mode(found.st_mode))),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Copies exactly as much as the header said.
fn copy(content: &mut dyn Read, file: OwnedFd, size: u64) -> Result<std::fs::File, Problem> {
    let mut file = std::fs::File::from(file);
    let mut buffer = vec![0; 1 << 16];
    let mut left = size;
    while left > 0 {
        let room = usize::try_from(left).map_or(buffer.len(), |left| left.min(buffer.len()));
        match content.read(&mut buffer[..room]) {
            Ok(0) => return Err(Problem::Unreadable(io::ErrorKind::UnexpectedEof.into())),
            Ok(count) => {
                left -= count as u64;
                file.write_all(&buffer[..count]).map_err(|error| {
                    Problem::Failed(Errno::from_io_error(&error).unwrap_or(Errno::IO))
                })?;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(Problem::Unreadable(error)),
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
