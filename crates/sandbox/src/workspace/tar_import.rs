//! Imports an untrusted tar archive as a workspace. Nothing is unpacked on the host.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};

use sandbox_backends::snapshot::{Entry, Kind, MAX_DEPTH, MAX_PATH_LEN, SnapshotWriter};
use sandbox_core::WorkspaceQuota;
use tar::{Archive, EntryType, PaxExtensions};

use super::{TarError, WorkspaceError};

/// Maximum size of a name or extended header, which is held in memory.
const MAX_EXTENSION_BYTES: u64 = 1 << 16;
/// Limits of the kernel.
const MAX_NAME_BYTES: usize = 255;
const MAX_TARGET_BYTES: usize = 4095;
/// Maximum size of headers, padding and long names of one entry.
const OVERHEAD: u64 = 1 << 18;

/// Converts an archive to the format of workspaces.
pub(super) fn read(
    archive: impl Read,
    into: &File,
    quota: WorkspaceQuota,
) -> Result<(), WorkspaceError> {
    // Bound the bytes that are read, whatever the archive contains.
    let most = quota.bytes.as_u64().saturating_add(quota.files.saturating_mul(OVERHEAD));
    let mut archive = Archive::new(archive.take(most));
    let writer = SnapshotWriter::new(into).map_err(ImportError::Write);
    let read = writer.and_then(|writer| {
        let mut import =
            Import { writer, quota, seen: BTreeMap::new(), next: NextEntry::default() };
        let entries = archive.entries().map_err(TarError::Unreadable)?;
        for entry in entries.raw(true) {
            import.entry(entry.map_err(TarError::Unreadable)?)?;
        }
        import.writer.finish().map_err(ImportError::Write)
    });
    match read {
        Ok(_) => Ok(()),
        Err(ImportError::Tar(error)) => Err(error.into()),
        Err(ImportError::Write(error)) => {
            Err(WorkspaceError::io("write", std::path::Path::new("the workspace"))(error))
        }
    }
}

/// Why the import failed.
enum ImportError {
    Tar(TarError),
    Write(io::Error),
}

impl From<TarError> for ImportError {
    fn from(error: TarError) -> Self {
        Self::Tar(error)
    }
}

struct Import<'a> {
    writer: SnapshotWriter<&'a File>,
    quota: WorkspaceQuota,
    seen: BTreeMap<Vec<u8>, Kind>,
    next: NextEntry,
}

/// Attributes of the next entry, from extension entries before it.
#[derive(Default)]
struct NextEntry {
    path: Option<Vec<u8>>,
    target: Option<Vec<u8>>,
}

impl Import<'_> {
    fn entry<R: Read>(&mut self, mut entry: tar::Entry<'_, R>) -> Result<(), ImportError> {
        let header = entry.header();
        let kind = match header.entry_type() {
            EntryType::GNULongName => {
                self.next.path = Some(text(&mut entry)?);
                return Ok(());
            }
            EntryType::GNULongLink => {
                self.next.target = Some(text(&mut entry)?);
                return Ok(());
            }
            EntryType::XHeader => return self.extension(&mut entry),
            EntryType::XGlobalHeader => return Ok(()),
            EntryType::Regular => Ok(Kind::File),
            EntryType::Directory => Ok(Kind::Directory),
            EntryType::Symlink => Ok(Kind::Link),
            EntryType::Link => Err("is a hard link, which is not taken"),
            EntryType::Char | EntryType::Block | EntryType::Fifo => {
                Err("is a device or a pipe, which is not taken")
            }
            _ => Err("is of a kind that is not taken"),
        };
        let next = std::mem::take(&mut self.next);
        let path = next.path.unwrap_or_else(|| header.path_bytes().into_owned());
        let kind = kind.map_err(|reason| refuse(&path, reason))?;
        let Some(path) = plain(&path)? else {
            return Ok(());
        };
        let mode = header.mode().map_err(TarError::Unreadable)? & 0o777;
        let modified = header.mtime().map_err(TarError::Unreadable)?;
        let modified = (i64::try_from(modified).unwrap_or(i64::MAX), 0);
        match kind {
            Kind::Directory => self.directory(path, mode, modified),
            Kind::File => {
                let size = header.size().map_err(TarError::Unreadable)?;
                let entry_of = Entry { path, kind, mode, modified, size };
                self.add(&entry_of, &mut entry)
            }
            Kind::Link => {
                let target = next.target.or_else(|| Some(header.link_name_bytes()?.into_owned()));
                let target = target.unwrap_or_default();
                if target.is_empty() || target.len() > MAX_TARGET_BYTES || target.contains(&0) {
                    return Err(refuse(&path, "is a link that leads nowhere").into());
                }
                let size = target.len() as u64;
                self.add(&Entry { path, kind, mode, modified, size }, &mut target.as_slice())
            }
        }
    }

    fn extension(&mut self, entry: &mut impl Read) -> Result<(), ImportError> {
        let bytes = bounded(entry)?;
        for extension in PaxExtensions::new(&bytes) {
            let extension = extension.map_err(TarError::Unreadable)?;
            match extension.key_bytes() {
                b"path" => self.next.path = Some(extension.value_bytes().to_vec()),
                b"linkpath" => self.next.target = Some(extension.value_bytes().to_vec()),
                // `size` is only used for files larger than any workspace, `GNU.sparse.major` for sparse files.
                b"size" | b"GNU.sparse.major" => {
                    return Err(refuse(b"an entry", "is of a kind that is not taken").into());
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn directory(
        &mut self,
        path: Vec<u8>,
        mode: u32,
        modified: (i64, u32),
    ) -> Result<(), ImportError> {
        match self.seen.get(&path) {
            Some(Kind::Directory) => Ok(()),
            Some(_) => Err(refuse(&path, "is there twice").into()),
            None => {
                let entry = Entry { path, kind: Kind::Directory, mode, modified, size: 0 };
                self.add(&entry, &mut io::empty())
            }
        }
    }

    fn add(&mut self, entry: &Entry, content: &mut dyn Read) -> Result<(), ImportError> {
        if let Some(slash) = entry.path.iter().rposition(|byte| *byte == b'/') {
            // Archives need not contain the parent directories of their files.
            self.directory(entry.path[..slash].to_vec(), 0o755, entry.modified)?;
        }
        if self.seen.insert(entry.path.clone(), entry.kind).is_some() {
            return Err(refuse(&entry.path, "is there twice").into());
        }
        let size = self.writer.size().plus(entry);
        if size.room > self.quota.bytes.as_u64() || size.content.files > self.quota.files {
            return Err(TarError::TooLarge(self.quota).into());
        }
        let mut content = TrackErrors { content, failed: false };
        self.writer.add(entry, &mut content).map_err(|error| {
            // A read error is an invalid archive; a write error is internal.
            if content.failed || error.kind() == io::ErrorKind::UnexpectedEof {
                TarError::Unreadable(error).into()
            } else {
                ImportError::Write(error)
            }
        })
    }
}

/// Records whether reading failed.
struct TrackErrors<'a> {
    content: &'a mut dyn Read,
    failed: bool,
}

impl Read for TrackErrors<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.content.read(buffer).inspect_err(|error| {
            self.failed = error.kind() != io::ErrorKind::Interrupted;
        })
    }
}

/// The normalized path; `None` for the top directory.
fn plain(path: &[u8]) -> Result<Option<Vec<u8>>, TarError> {
    if path.starts_with(b"/") {
        return Err(refuse(path, "is not below the workspace: its path begins at the root"));
    }
    let parts = path.split(|byte| *byte == b'/');
    let parts: Vec<&[u8]> = parts.filter(|part| !part.is_empty() && *part != b".").collect();
    if parts.contains(&&b".."[..]) {
        return Err(refuse(path, "is not below the workspace: its path has '..' in it"));
    }
    if parts.iter().any(|part| part.len() > MAX_NAME_BYTES || part.contains(&0)) {
        return Err(refuse(path, "has a name that no file can have"));
    }
    let joined = parts.join(&b'/');
    if parts.len() > MAX_DEPTH || joined.len() > MAX_PATH_LEN {
        return Err(refuse(path, "lies too deep"));
    }
    Ok((!parts.is_empty()).then_some(joined))
}

/// The name in an extension entry, without a trailing zero byte.
fn text(entry: &mut impl Read) -> Result<Vec<u8>, ImportError> {
    let mut bytes = bounded(entry)?;
    if bytes.last() == Some(&0) {
        bytes.pop();
    }
    Ok(bytes)
}

fn bounded(entry: &mut impl Read) -> Result<Vec<u8>, ImportError> {
    let mut bytes = Vec::new();
    let read = entry.take(MAX_EXTENSION_BYTES + 1).read_to_end(&mut bytes);
    read.map_err(TarError::Unreadable)?;
    if bytes.len() as u64 > MAX_EXTENSION_BYTES {
        return Err(refuse(b"an entry", "has a name that no file can have").into());
    }
    Ok(bytes)
}

fn refuse(path: &[u8], reason: &'static str) -> TarError {
    let path: String = String::from_utf8_lossy(path).chars().take(200).collect();
    TarError::Entry { path: path.escape_debug().to_string(), reason }
}
