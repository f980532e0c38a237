use std::borrow::Cow;
use std::io::{self, Read};

use rustix::io::Errno;
use tar::Archive;

use super::Packed;
use super::budget::{Budget, Metered};
use super::tree::{Problem, Tree};
use crate::archive::{Header, Kind, decompress, for_each, plain, printable};
use crate::{LayerError, Limits};

/// One layer on its way into the tree.
pub(super) struct Layer<'a> {
    pub(super) tree: &'a mut Tree,
    pub(super) budget: &'a mut Budget,
    pub(super) limits: &'a Limits,
}

/// What a name begins with that removes what an earlier layer made.
const WHITEOUT: &[u8] = b".wh.";
/// The name that removes all that earlier layers put beside it.
const OPAQUE: &[u8] = b".wh..wh..opq";
const LONGEST_TARGET: usize = 4095;
/// Permissions and the sticky bit. What would give rights to whoever runs a program is not kept.
const KEPT_MODE: u32 = 0o1777;

impl Layer<'_> {
    pub(super) fn unpack(mut self, packed: Packed) -> Result<(), LayerError> {
        self.tree.begin_layer();
        let content = decompress(packed.file).map_err(LayerError::Unreadable)?;
        let mut archive = Archive::new(Metered::new(content, self.budget));
        let mut taken = for_each(&mut archive, |header, content| self.entry(&header, content));
        let mut metered = archive.into_inner();
        if taken.is_ok() {
            // The digest is that of the whole, with whatever stands behind the last entry.
            let rest = io::copy(&mut metered, &mut io::sink());
            taken = rest.map(drop).map_err(LayerError::Unreadable);
        }
        metered.settle(self.budget);
        if let Some(over) = self.budget.is_overdrawn() {
            // Which is also why reading failed, if it did.
            return Err(over);
        }
        taken?;
        let found = metered.digest();
        if found != packed.content {
            return Err(LayerError::WrongContent { wanted: packed.content, found });
        }
        Ok(())
    }

    fn entry(&mut self, header: &Header, content: &mut dyn Read) -> Result<(), LayerError> {
        self.budget.entry()?;
        let refuse =
            |reason: Cow<'static, str>| LayerError::Entry { path: printable(&header.path), reason };
        let parts = plain(&header.path, self.limits.path_bytes).map_err(refuse)?;
        let done = match parts.split_last() {
            // The top is there already, and looks as we made it.
            None if header.kind == Kind::Directory => Ok(()),
            None => return Err(refuse("stands for the root and is no directory".into())),
            Some((name, above)) => self.named(header, above, name, content),
        };
        done.map_err(|problem| match problem {
            Problem::Refused(reason) => refuse(reason),
            Problem::Unreadable(error) => LayerError::Unreadable(error),
            Problem::Failed(error) => {
                LayerError::Write { path: printable(&header.path), source: error.into() }
            }
        })
    }

    fn named(
        &mut self,
        header: &Header,
        above: &[&[u8]],
        name: &[u8],
        content: &mut dyn Read,
    ) -> Result<(), Problem> {
        if above.len() >= self.limits.depth {
            return Err(Problem::too_deep(self.limits.depth));
        }
        if above.iter().any(|part| part.starts_with(WHITEOUT)) {
            return Err("lies below a name that is kept for whiteouts".into());
        }
        if let Some(removed) = name.strip_prefix(WHITEOUT) {
            return self.whiteout(above, name, removed);
        }
        if header.size > self.limits.file_bytes {
            let most = self.limits.file_bytes;
            return Err(Problem::Refused(format!("is larger than {most} bytes").into()));
        }
        match header.kind {
            Kind::OverlayWhiteout => return Ok(()),
            Kind::Other(reason) => return Err(reason.into()),
            _ => {}
        }
        let place = self.tree.place(above, name)?;
        let mode = header.mode & KEPT_MODE;
        match header.kind {
            Kind::Directory => self.tree.put_directory(&place, mode),
            Kind::Symlink => self.tree.put_symlink(&place, target(header)?, header.modified),
            Kind::HardLink => {
                let target = plain(target(header)?, self.limits.path_bytes);
                let target = target.map_err(|reason| {
                    Problem::Refused(format!("is a hard link whose target {reason}").into())
                })?;
                self.tree.put_hard_link(&place, &target)
            }
            _ => self.tree.put_file(&place, mode, header.modified, header.size, content),
        }
    }

    fn whiteout(&mut self, above: &[&[u8]], name: &[u8], removed: &[u8]) -> Result<(), Problem> {
        match removed {
            _ if name == OPAQUE => self.tree.empty(above),
            b"" => Err("is a whiteout of nothing".into()),
            b"." | b".." => Err("is a whiteout of '.' or '..'".into()),
            _ if removed.starts_with(WHITEOUT) => Err("is a whiteout of an unknown kind".into()),
            _ => self.tree.remove(above, removed),
        }
    }
}

fn target(header: &Header) -> Result<&[u8], Problem> {
    match header.target.as_slice() {
        b"" => Err("is a link that leads nowhere".into()),
        target if target.len() > LONGEST_TARGET => Err("is a link with too long a target".into()),
        target if target.contains(&0) => Err("is a link with a zero byte in its target".into()),
        target => Ok(target),
    }
}

impl From<&'static str> for Problem {
    fn from(reason: &'static str) -> Self {
        Self::Refused(reason.into())
    }
}

impl From<Errno> for Problem {
    fn from(error: Errno) -> Self {
        Self::Failed(error)
    }
}
