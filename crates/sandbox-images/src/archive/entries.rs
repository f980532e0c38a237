use std::io::Read;

use tar::{Archive, EntryType};

use super::extensions::{Said, gnu_name};
use super::printable;
use crate::LayerError;

/// What an archive says about one thing in it. Nothing is checked yet.
#[derive(Debug)]
pub(crate) struct Header {
    pub(crate) path: Vec<u8>,
    pub(crate) kind: Kind,
    /// Where a link leads.
    pub(crate) target: Vec<u8>,
    pub(crate) size: u64,
    pub(crate) mode: u32,
    /// Seconds since 1970.
    pub(crate) modified: i64,
}

/// What can be in an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    File,
    Directory,
    Symlink,
    HardLink,
    /// How overlay file systems write that something is gone: a character device with both numbers 0.
    OverlayWhiteout,
    /// Something else, with what to say about it.
    Other(&'static str),
}

/// Calls `take` with each thing in an archive, and its content.
///
/// Long names are put together here and not by the tar library, which holds any amount of them in memory.
pub(crate) fn for_each<R: Read, E: From<LayerError>>(
    archive: &mut Archive<R>,
    mut take: impl FnMut(Header, &mut dyn Read) -> Result<(), E>,
) -> Result<(), E> {
    let mut said = Said::default();
    let entries = archive.entries().map_err(LayerError::Unreadable)?;
    for entry in entries.raw(true) {
        let mut entry = entry.map_err(LayerError::Unreadable)?;
        match entry.header().entry_type() {
            EntryType::GNULongName => said.path = Some(gnu_name(&mut entry)?),
            EntryType::GNULongLink => said.target = Some(gnu_name(&mut entry)?),
            EntryType::XHeader => said.hear_pax(&mut entry)?,
            // It is about all that follow, which nobody who makes images needs.
            EntryType::XGlobalHeader => {}
            _ => {
                let header = together(entry.header(), std::mem::take(&mut said))?;
                take(header, &mut entry)?;
            }
        }
    }
    Ok(())
}

fn together(header: &tar::Header, said: Said) -> Result<Header, LayerError> {
    let path = said.path.unwrap_or_else(|| header.path_bytes().into_owned());
    let refuse =
        |reason: &'static str| LayerError::Entry { path: printable(&path), reason: reason.into() };
    let size = header.entry_size().map_err(|_| refuse("has a size that is no number"))?;
    if said.size.is_some_and(|said| said != size) {
        // Two readers could see two different archives.
        return Err(refuse("has two sizes that differ"));
    }
    if said.sparse {
        return Err(refuse("is a sparse file, which is not taken"));
    }
    let target = said.target.or_else(|| Some(header.link_name_bytes()?.into_owned()));
    let mut kind = kind(header);
    if kind == Kind::File && size == 0 && path.ends_with(b"/") {
        // How directories were written before there was a kind for them.
        kind = Kind::Directory;
    }
    Ok(Header {
        kind,
        target: target.unwrap_or_default(),
        size,
        mode: mode(header).ok_or_else(|| refuse("has a mode that is no number"))?,
        // A time from before 1970 is told in a way that is no number here.
        modified: header.mtime().ok().and_then(|time| i64::try_from(time).ok()).unwrap_or_default(),
        path,
    })
}

/// Some writers leave the mode of links empty.
fn mode(header: &tar::Header) -> Option<u32> {
    let is_empty = header.as_old().mode.iter().all(|byte| matches!(byte, 0 | b' '));
    if is_empty { Some(0) } else { header.mode().ok() }
}

fn kind(header: &tar::Header) -> Kind {
    let number = |number: std::io::Result<Option<u32>>| number.ok().flatten().unwrap_or_default();
    match header.entry_type() {
        EntryType::Regular | EntryType::Continuous => Kind::File,
        EntryType::Directory => Kind::Directory,
        EntryType::Symlink => Kind::Symlink,
        EntryType::Link => Kind::HardLink,
        EntryType::Char
            if (number(header.device_major()), number(header.device_minor())) == (0, 0) =>
        {
            Kind::OverlayWhiteout
        }
        EntryType::Char | EntryType::Block => Kind::Other("is a device, which is not taken"),
        EntryType::Fifo => Kind::Other("is a pipe, which is not taken"),
        EntryType::GNUSparse => Kind::Other("is a sparse file, which is not taken"),
        _ => Kind::Other("is of a kind that is not taken"),
    }
}
