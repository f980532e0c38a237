use std::fs::File;
use std::io::{self, Read};

use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};
use rustix::io::Errno;

use super::Files;
use crate::archive::plain;
use crate::store::Staging;
use crate::{Digest, ImageError};

/// A directory with an image in it. Its files are looked up beneath it, and no link is followed.
#[derive(Debug)]
pub(super) struct Opened {
    directory: File,
}

impl Opened {
    pub(super) fn new(directory: File) -> Self {
        Self { directory }
    }
}

impl Files for Opened {
    fn take(
        &mut self,
        staging: &mut Staging<'_>,
        path: &str,
    ) -> Result<Option<(Digest, u64)>, ImageError> {
        let wrong = |reason: &str| ImageError::document("layout", format!("'{path}' {reason}"));
        plain(path.as_bytes(), staging.limits.path_bytes).map_err(|reason| wrong(&reason))?;
        let resolve =
            ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        // Non-blocking, in case it is a pipe; the kind is asked below.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match openat2(&self.directory, path, flags, Mode::empty(), resolve) {
            Ok(file) => File::from(file),
            Err(Errno::NOENT | Errno::NOTDIR) => return Ok(None),
            Err(Errno::LOOP) => return Err(wrong("is a link, or lies below one")),
            Err(error) => return Err(ImageError::io("open", path.as_ref())(error.into())),
        };
        let failed = || ImageError::io("read", path.as_ref());
        if !file.metadata().map_err(failed())?.is_file() {
            return Err(wrong("is no file"));
        }
        let most = staging.limits.blob_bytes;
        let mut writer = staging.writer()?;
        let copied = io::copy(&mut file.take(most.saturating_add(1)), &mut writer);
        if copied.map_err(failed())? > most {
            let what = format!("the size of '{path}' in bytes");
            return Err(ImageError::TooMuch { what, most });
        }
        staging.keep(writer).map(Some)
    }
}
