use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use sandbox_backends::snapshot::{Entry, Kind, SnapshotReader};
use tar::{Builder, EntryType, Header};

/// Writes the content of a workspace as a tar archive, with GNU long names.
pub(super) fn write(content: File, into: impl Write) -> io::Result<()> {
    let mut reader = SnapshotReader::new(content)?;
    let mut archive = Builder::new(into);
    while let Some(mut entry) = reader.next_entry()? {
        if entry.kind == Kind::Directory {
            // Like GNU tar.
            entry.path.push(b'/');
        }
        let path = Path::new(OsStr::from_bytes(&entry.path));
        let mut header = header(&entry);
        match entry.kind {
            Kind::File | Kind::Directory => archive.append_data(&mut header, path, &mut reader)?,
            Kind::Link => {
                let mut target = Vec::new();
                reader.read_to_end(&mut target)?;
                archive.append_link(&mut header, path, OsStr::from_bytes(&target))?;
            }
        }
    }
    archive.into_inner()?.flush()
}

/// No owner is recorded: files belong to the user who unpacks the archive.
fn header(entry: &Entry) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(match entry.kind {
        Kind::File => EntryType::Regular,
        Kind::Directory => EntryType::Directory,
        Kind::Link => EntryType::Symlink,
    });
    header.set_mode(entry.mode);
    header.set_mtime(u64::try_from(entry.modified.0).unwrap_or(0));
    header.set_size(if entry.kind == Kind::File { entry.size } else { 0 });
    header
}
