use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Write};

use tar::Archive;

use super::Files;
use crate::archive::{Header, Kind, decompress, for_each, plain, printable};
use crate::store::Staging;
use crate::{Digest, ImageError, LayerError, Progress};

/// The files of an archive, all of them staged: which are layers is said by one that may be the last.
#[derive(Debug, Default)]
pub(super) struct Listed {
    files: HashMap<String, Member>,
}

#[derive(Debug)]
enum Member {
    File(Digest, u64),
    /// Where a link leads. Docker used to write them for layers that are there twice.
    Link(String),
}

/// Layers that are links to links to links do not happen.
const MOST_LINKS: usize = 8;
const BETWEEN_TOLD: u64 = 16 << 20;

pub(super) fn read(
    file: File,
    staging: &mut Staging<'_>,
    progress: &mut dyn FnMut(Progress),
) -> Result<Listed, ImageError> {
    let most = staging.limits.blob_bytes;
    let content = decompress(file).map_err(ImageError::Unreadable)?;
    // One more than there may be, which tells an archive that is too large from one that breaks off.
    let mut archive = Archive::new(content.take(most.saturating_add(1)));
    let mut listed = Listed::default();
    let mut bytes = 0;
    let read = for_each(&mut archive, |header, content| {
        let before = bytes;
        bytes += header.size;
        if bytes / BETWEEN_TOLD > before / BETWEEN_TOLD {
            progress(Progress::Reading { bytes });
        }
        listed.member(&header, content, staging)
    });
    let too_large = archive.into_inner().limit() == 0;
    if too_large {
        let what = "the size of the archive in bytes".to_owned();
        return Err(ImageError::TooMuch { what, most });
    }
    read.map(|()| listed)
}

impl Listed {
    fn member(
        &mut self,
        header: &Header,
        content: &mut dyn Read,
        staging: &mut Staging<'_>,
    ) -> Result<(), ImageError> {
        let refuse = |reason: &str| {
            ImageError::document("archive", format!("'{}' {reason}", printable(&header.path)))
        };
        let parts = plain(&header.path, staging.limits.path_bytes);
        let parts = parts.map_err(|reason| refuse(&reason))?;
        let path = String::from_utf8(parts.join(&b'/')).map_err(|_| refuse("is no text"))?;
        let member = match header.kind {
            Kind::Directory => return Ok(()),
            Kind::File => {
                let (digest, size) = stage(content, header.size, staging)?;
                Member::File(digest, size)
            }
            Kind::Symlink | Kind::HardLink => {
                let target = String::from_utf8(header.target.clone());
                let target = target.map_err(|_| refuse("is a link to what is no text"))?;
                let hard = header.kind == Kind::HardLink;
                let target = if hard { Some(target) } else { beside(&path, &target) };
                Member::Link(target.ok_or_else(|| refuse("is a link that leads out of it"))?)
            }
            Kind::OverlayWhiteout => return Err(refuse("is a device, which is not taken")),
            Kind::Other(reason) => return Err(refuse(reason)),
        };
        if self.files.len() >= staging.limits.archive_entries {
            let most = staging.limits.archive_entries as u64;
            let what = "the number of files in the archive".to_owned();
            return Err(ImageError::TooMuch { what, most });
        }
        if self.files.insert(path, member).is_some() {
            // Two readers could see two different images.
            return Err(refuse("is there twice"));
        }
        Ok(())
    }
}

impl Files for Listed {
    fn take(
        &mut self,
        _: &mut Staging<'_>,
        path: &str,
    ) -> Result<Option<(Digest, u64)>, ImageError> {
        let mut path = path;
        for _ in 0..MOST_LINKS {
            match self.files.get(path) {
                Some(Member::Link(target)) => path = target,
                Some(Member::File(digest, size)) => return Ok(Some((digest.clone(), *size))),
                None => return Ok(None),
            }
        }
        Ok(None)
    }
}

fn stage(
    content: &mut dyn Read,
    size: u64,
    staging: &mut Staging<'_>,
) -> Result<(Digest, u64), ImageError> {
    let mut writer = staging.writer()?;
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
    staging.keep(writer)
}

/// Where a link leads, as a path in the archive. None if that is outside.
fn beside(path: &str, target: &str) -> Option<String> {
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

/// What is wrong with an archive is told like what is wrong with a layer.
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
    fn a_link_leads_to_a_path_of_the_archive_or_nowhere() {
        for (path, target, wanted) in [
            ("a/layer.tar", "../b/layer.tar", Some("b/layer.tar")),
            ("a/layer.tar", "./x", Some("a/x")),
            ("a/layer.tar", "../../etc/passwd", None),
            ("a/layer.tar", "/etc/passwd", None),
        ] {
            assert_eq!(beside(path, target).as_deref(), wanted, "{target}");
        }
    }
}
