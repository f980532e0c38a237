use std::borrow::Cow;
use std::io::{self, Read};

use rustix::io::Errno;
use tar::Archive;

use super::Layer;
use super::budget::{Budget, Metered};
use super::tree::{EntryError, Tree};
use crate::archive::{Header, Kind, decompress, for_each_entry, parse_path, printable};
use crate::{LayerError, Limits};

/// Unpacks layers into a tree.
pub(super) struct Unpacker<'a> {
    pub(super) tree: &'a mut Tree,
    pub(super) budget: &'a mut Budget,
    pub(super) limits: &'a Limits,
}

/// The prefix of a name that removes a file of an earlier layer.
const WHITEOUT_PREFIX: &[u8] = b".wh.";
/// The name that removes all files of earlier layers in its directory.
const OPAQUE_WHITEOUT: &[u8] = b".wh..wh..opq";
const MAX_TARGET: usize = 4095;
/// Permissions and the sticky bit. Set-user-ID and set-group-ID are dropped, because they grant privileges.
const KEPT_MODE: u32 = 0o1777;

impl Unpacker<'_> {
    pub(super) fn unpack(mut self, layer: Layer) -> Result<(), LayerError> {
        self.tree.begin_layer();
        let content = decompress(layer.file).map_err(LayerError::Unreadable)?;
        let mut archive = Archive::new(Metered::new(content, self.budget));
        let mut unpacked =
            for_each_entry(&mut archive, |header, content| self.entry(&header, content));
        let mut metered = archive.into_inner();
        if unpacked.is_ok() {
            // The digest includes everything behind the last entry.
            let rest = io::copy(&mut metered, &mut io::sink());
            unpacked = rest.map(drop).map_err(LayerError::Unreadable);
        }
        metered.charge(self.budget);
        // First, because reading fails at the limit with a less specific error.
        self.budget.check_bytes()?;
        unpacked?;
        let found = metered.digest();
        if found != layer.diff_id {
            return Err(LayerError::DigestMismatch { expected: layer.diff_id, found });
        }
        Ok(())
    }

    fn entry(&mut self, header: &Header, content: &mut dyn Read) -> Result<(), LayerError> {
        self.budget.add_entry()?;
        let reject =
            |reason: Cow<'static, str>| LayerError::Entry { path: printable(&header.path), reason };
        let parts = parse_path(&header.path, self.limits.path_bytes).map_err(reject)?;
        let unpacked = match parts.split_last() {
            // The root exists already; its mode is not the image's to choose.
            None if header.kind == Kind::Directory => Ok(()),
            None => return Err(reject("is the root, but not a directory".into())),
            Some((name, parent)) => self.named_entry(header, parent, name, content),
        };
        unpacked.map_err(|error| match error {
            EntryError::Rejected(reason) => reject(reason),
            EntryError::Unreadable(error) => LayerError::Unreadable(error),
            EntryError::Failed(error) => {
                LayerError::Write { path: printable(&header.path), source: error.into() }
            }
        })
    }

    fn named_entry(
        &mut self,
        header: &Header,
        parent: &[&[u8]],
        name: &[u8],
        content: &mut dyn Read,
    ) -> Result<(), EntryError> {
        if parent.len() >= self.limits.depth {
            return Err(EntryError::too_deep(self.limits.depth));
        }
        if parent.iter().any(|part| part.starts_with(WHITEOUT_PREFIX)) {
            return Err("is below a name reserved for whiteouts".into());
        }
        if let Some(removed) = name.strip_prefix(WHITEOUT_PREFIX) {
            return self.whiteout(parent, name, removed);
        }
        if header.size > self.limits.file_bytes {
            let limit = self.limits.file_bytes;
            return Err(EntryError::Rejected(format!("is larger than {limit} bytes").into()));
        }
        match header.kind {
            Kind::OverlayWhiteout => return Ok(()),
            Kind::Other(reason) => return Err(reason.into()),
            _ => {}
        }
        let location = self.tree.locate(parent, name)?;
        let mode = header.mode & KEPT_MODE;
        match header.kind {
            Kind::Directory => self.tree.create_directory(&location, mode),
            Kind::Symlink => self.tree.create_symlink(&location, target(header)?, header.modified),
            Kind::HardLink => {
                let target = parse_path(target(header)?, self.limits.path_bytes);
                let target = target.map_err(|reason| {
                    EntryError::Rejected(format!("is a hard link whose target {reason}").into())
                })?;
                self.tree.create_hard_link(&location, &target)
            }
            _ => self.tree.create_file(&location, mode, header.modified, header.size, content),
        }
    }

    fn whiteout(
        &mut self,
        parent: &[&[u8]],
        name: &[u8],
        removed: &[u8],
    ) -> Result<(), EntryError> {
        match removed {
            _ if name == OPAQUE_WHITEOUT => self.tree.remove_contents(parent),
            b"" => Err("is a whiteout without a name".into()),
            b"." | b".." => Err("is a whiteout of '.' or '..'".into()),
            _ if removed.starts_with(WHITEOUT_PREFIX) => {
                Err("is an unknown kind of whiteout".into())
            }
            _ => self.tree.remove(parent, removed),
        }
    }
}

fn target(header: &Header) -> Result<&[u8], EntryError> {
    match header.target.as_slice() {
        b"" => Err("is a link without a target".into()),
        target if target.len() > MAX_TARGET => Err("is a link with too long a target".into()),
        target if target.contains(&0) => Err("is a link with a zero byte in its target".into()),
        target => Ok(target),
    }
}

impl From<&'static str> for EntryError {
    fn from(reason: &'static str) -> Self {
        Self::Rejected(reason.into())
    }
}

impl From<Errno> for EntryError {
    fn from(error: Errno) -> Self {
        Self::Failed(error)
    }
}
