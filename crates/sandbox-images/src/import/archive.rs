use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Write};

use tar::Archive;

use super::ImageFiles;
use crate::archive::{Header, Kind, decompress, for_each_entry, parse_path, printable};
use crate::store::Staging;
use crate::{Digest, ImageError, LayerError, Progress};

/// The files of an archive. All of them are staged, because the list of layers may come last.
#[derive(Debug, Default)]
pub(super) struct ArchiveFiles {
    files: HashMap<String, Member>,
}

#[derive(Debug)]
enum Member {
    File(Digest, u64),
    /// The target of a link. Older versions of Docker write links for layers that occur twice.
    Link(String),
}

/// The maximum length of a chain of links.
const MAX_LINKS: usize = 8;
/// Progress is reported each time this many bytes have been read.
const PROGRESS_BYTES: u64 = 16 << 20;

pub(super) fn read(
    file: File,
    staging: &mut Staging<'_>,
    progress: &mut dyn FnMut(Progress),
) -> Result<ArchiveFiles, ImageError> {
    let limit = staging.limits.blob_bytes;
    let content = decompress(file).map_err(ImageError::Unreadable)?;
    // One byte more than the limit, which distinguishes an archive that is too large from a truncated one.
    let mut archive = Archive::new(content.take(limit.saturating_add(1)));
    let mut files = ArchiveFiles::default();
    let mut bytes = 0;
    let read = for_each_entry(&mut archive, |header, content| {
        let before = bytes;
        bytes += header.size;
        if bytes / PROGRESS_BYTES > before / PROGRESS_BYTES {
            progress(Progress::Reading { bytes });
        }
        files.add(&header, content, staging)
    });
    let too_large = archive.into_inner().limit() == 0;
    if too_large {
        let what = "the size of the archive in bytes".to_owned();
        return Err(ImageError::LimitExceeded { what, limit });
    }
    read.map(|()| files)
}

impl ArchiveFiles {
    fn add(
        &mut self,
        header: &Header,
        content: &mut dyn Read,
        staging: &mut Staging<'_>,
    ) -> Result<(), ImageError> {
        let reject = |reason: &str| {
            ImageError::document("archive", format!("'{}' {reason}", printable(&header.path)))
        };
        let parts = parse_path(&header.path, staging.limits.path_bytes);
        let parts = parts.map_err(|reason| reject(&reason))?;
        let path =
            String::from_utf8(parts.join(&b'/')).map_err(|_| reject("is not valid UTF-8"))?;
        let member = match header.kind {
            Kind::Directory => return Ok(()),
            Kind::File => {
                let (digest, size) = stage_content(content, header.size, staging)?;
                Member::File(digest, size)
            }
            Kind::Symlink | Kind::HardLink => {
                let target = String::from_utf8(header.target.clone());
                let target =
                    target.map_err(|_| reject("is a link whose target is not valid UTF-8"))?;
                let hard = header.kind == Kind::HardLink;
                let target = if hard { Some(target) } else { resolve_link(&path, &target) };
                Member::Link(
                    target.ok_or_else(|| reject("is a link that leads out of the archive"))?,
                )
            }
            Kind::OverlayWhiteout => return Err(reject("is a device, which is not allowed")),
            Kind::Other(reason) => return Err(reject(reason)),
        };
        if self.files.len() >= staging.limits.archive_entries {
            let limit = staging.limits.archive_entries as u64;
            let what = "the number of files in the archive".to_owned();
            return Err(ImageError::LimitExceeded { what, limit });
        }
        if self.files.insert(path, member).is_some() {
            // Two readers could see two different images.
            return Err(reject("occurs twice"));
        }
        Ok(())
    }
}

impl ImageFiles for ArchiveFiles {
    fn stage(
        &mut self,
        _: &mut Staging<'_>,
        path: &str,
    ) -> Result<Option<(Digest, u64)>, ImageError> {
        let mut path = path;
        for _ in 0..MAX_LINKS {
            match self.files.get(path) {
                Some(Member::Link(target)) => path = target,
                Some(Member::File(digest, size)) => return Ok(Some((digest.clone(), *size))),
                None => return Ok(None),
            }
        }
        Ok(None)
    }
}

fn stage_content(
    content: &mut dyn Read,
    size: u64,
    staging: &mut Staging<'_>,
) -> Result<(Digest, u64), ImageError> {
    let mut writer = staging.blob_writer()?;
    let mut buffer = vec![0; 1 << 16];
    loop {
        let count = match content.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(ImageError::Unreadable(error)),
        };
        let written = writer.write_all(&buffer[..count]);
        written.map_err(ImageError::io("write", "the archive's files".as_ref()))?;
    }
    if writer.size() < size {
        return Err(ImageError::Unreadable(io::ErrorKind::UnexpectedEof.into()));
    }
    staging.add(writer)
}

/// Resolves a link to a path in the archive; none if it leads out of it.
fn resolve_link(path: &str, target: &str) -> Option<String> {
    let mut parts: Vec<&str> = path.split('/').collect();
    parts.pop();
    if target.starts_with('/') {
        return None;
    }
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

impl From<LayerError> for ImageError {
    fn from(error: LayerError) -> Self {
        match error {
            LayerError::Unreadable(error) => Self::Unreadable(error),
            error => Self::document("archive", error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_resolved_within_the_archive() {
        for (path, target, expected) in [
            ("a/layer.tar", "../b/layer.tar", Some("b/layer.tar")),
            ("a/layer.tar", "./x", Some("a/x")),
            ("a/layer.tar", "../../etc/passwd", None),
            ("a/layer.tar", "/etc/passwd", None),
        ] {
            assert_eq!(resolve_link(path, target).as_deref(), expected, "{target}");
        }
    }
}
