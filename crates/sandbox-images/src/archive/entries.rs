use std::io::Read;

use tar::{Archive, EntryType};

use super::extensions::{Extensions, gnu_name};
use super::printable;
use crate::LayerError;

/// The header of an entry, unchecked.
#[derive(Debug)]
pub(crate) struct Header {
    pub(crate) path: Vec<u8>,
    pub(crate) kind: Kind,
    /// The target of a link.
    pub(crate) target: Vec<u8>,
    pub(crate) size: u64,
    pub(crate) mode: u32,
    /// Seconds since 1970.
    pub(crate) modified: i64,
}

/// The type of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    File,
    Directory,
    Symlink,
    HardLink,
    /// The whiteout of overlayfs: a character device with both numbers 0.
    OverlayWhiteout,
    /// An unsupported type, with the reason for a message.
    Other(&'static str),
}

/// Calls `handle` with the header and content of each entry.
///
/// Extension headers are parsed here and not by the tar library, which reads them into memory whatever their size.
pub(crate) fn for_each_entry<R: Read, E: From<LayerError>>(
    archive: &mut Archive<R>,
    mut handle: impl FnMut(Header, &mut dyn Read) -> Result<(), E>,
) -> Result<(), E> {
    let mut extensions = Extensions::default();
    let entries = archive.entries().map_err(LayerError::Unreadable)?;
    for entry in entries.raw(true) {
        let mut entry = entry.map_err(LayerError::Unreadable)?;
        match entry.header().entry_type() {
            EntryType::GNULongName => extensions.path = Some(gnu_name(&mut entry)?),
            EntryType::GNULongLink => extensions.target = Some(gnu_name(&mut entry)?),
            EntryType::XHeader => extensions.parse_pax(&mut entry)?,
            // Applies to all following entries; image builders do not write it.
            EntryType::XGlobalHeader => {}
            _ => {
                let header = header(entry.header(), std::mem::take(&mut extensions))?;
                handle(header, &mut entry)?;
            }
        }
    }
    Ok(())
}

/// Merges a header with the extension headers before it.
fn header(header: &tar::Header, extensions: Extensions) -> Result<Header, LayerError> {
    let path = extensions.path.unwrap_or_else(|| header.path_bytes().into_owned());
    let reject =
        |reason: &'static str| LayerError::Entry { path: printable(&path), reason: reason.into() };
    let size = header.entry_size().map_err(|_| reject("has an invalid size"))?;
    if extensions.size.is_some_and(|extended| extended != size) {
        // Two readers could see two different archives.
        return Err(reject("has two different sizes"));
    }
    if extensions.sparse {
        return Err(reject("is a sparse file, which is not supported"));
    }
    let target = extensions.target.or_else(|| Some(header.link_name_bytes()?.into_owned()));
    let mut kind = kind(header);
    if kind == Kind::File && size == 0 && path.ends_with(b"/") {
        // Old tar formats have no type for directories.
        kind = Kind::Directory;
    }
    Ok(Header {
        kind,
        target: target.unwrap_or_default(),
        size,
        mode: mode(header).ok_or_else(|| reject("has an invalid mode"))?,
        // Times before 1970 have another encoding and are dropped.
        modified: header.mtime().ok().and_then(|time| i64::try_from(time).ok()).unwrap_or_default(),
        path,
    })
}

/// Parses the mode. Some tools leave the mode of links empty.
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
        EntryType::Char | EntryType::Block => Kind::Other("is a device, which is not allowed"),
        EntryType::Fifo => Kind::Other("is a pipe, which is not allowed"),
        EntryType::GNUSparse => Kind::Other("is a sparse file, which is not supported"),
        _ => Kind::Other("has an unsupported type"),
    }
}
