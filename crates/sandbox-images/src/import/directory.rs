use std::fs::File;
use std::io::{self, Read};

use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};
use rustix::io::Errno;

use super::ImageFiles;
use crate::archive::parse_path;
use crate::store::Staging;
use crate::{Digest, ImageError};

/// The files of an OCI layout in a directory. They are looked up beneath it, without following links.
#[derive(Debug)]
pub(super) struct DirectoryFiles {
    directory: File,
}

impl DirectoryFiles {
    pub(super) fn new(directory: File) -> Self {
        Self { directory }
    }
}

impl ImageFiles for DirectoryFiles {
    fn stage(
        &mut self,
        staging: &mut Staging<'_>,
        path: &str,
    ) -> Result<Option<(Digest, u64)>, ImageError> {
        let reject = |reason: &str| ImageError::document("layout", format!("'{path}' {reason}"));
        parse_path(path.as_bytes(), staging.limits.path_bytes).map_err(|reason| reject(&reason))?;
        let resolve =
            ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        // Non-blocking, in case it is a pipe; the type is checked below.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match openat2(&self.directory, path, flags, Mode::empty(), resolve) {
            Ok(file) => File::from(file),
            Err(Errno::NOENT | Errno::NOTDIR) => return Ok(None),
            Err(Errno::LOOP) => return Err(reject("is a link, or is below one")),
            Err(error) => return Err(ImageError::io("open", path.as_ref())(error.into())),
        };
        let failed = || ImageError::io("read", path.as_ref());
        if !file.metadata().map_err(failed())?.is_file() {
            return Err(reject("is not a file"));
        }
        let limit = staging.limits.blob_bytes;
        let mut writer = staging.blob_writer()?;
        let copied = io::copy(&mut file.take(limit.saturating_add(1)), &mut writer);
        if copied.map_err(failed())? > limit {
            let what = format!("the size of '{path}' in bytes");
            return Err(ImageError::LimitExceeded { what, limit });
        }
        staging.add(writer).map(Some)
    }
}
