use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};

use sandbox_core::WorkspaceSize;

/// Longer paths are not saved: such a file could not be created again. The kernel's bound, less the
/// directory that the path is joined to.
pub const MAX_PATH_LEN: usize = 2048;

const MAGIC: &[u8; 8] = b"sbxwork1";
const END: u8 = 0;
const END_LENGTH: i64 = 1 + 3 * 8;
const BUFFER: usize = 1 << 17;
/// The allocation unit of tmpfs.
const PAGE: u64 = 4096;
/// A link up to this length is stored in the inode.
const SHORT_LINK: u64 = 128;

/// The type of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A directory. It comes before its content.
    Directory,
    /// A regular file, followed by its content.
    File,
    /// A symbolic link, followed by its target, which is never resolved.
    Link,
}

/// An entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The path relative to the top, as bytes: it need not be valid UTF-8.
    pub path: Vec<u8>,
    /// Its type.
    pub kind: Kind,
    /// Permissions: nine bits.
    pub mode: u32,
    /// Modification time: seconds since 1970, and nanoseconds.
    pub modified: (i64, u32),
    /// Number of bytes that follow.
    pub size: u64,
}

/// The size of a snapshot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SnapshotSize {
    /// The size of the content.
    pub content: WorkspaceSize,
    /// Bytes that it takes when restored, in whole pages: a thousand files of one byte take more
    /// than a thousand bytes.
    pub room: u64,
}

/// Writes a snapshot.
pub struct SnapshotWriter<W: Write> {
    file: BufWriter<W>,
    size: SnapshotSize,
}

/// Reads a snapshot, entry by entry.
pub struct SnapshotReader<R: Read + Seek> {
    file: BufReader<R>,
    /// Remaining bytes of the current entry.
    left: u64,
}

impl SnapshotSize {
    /// The size with one more entry.
    #[must_use]
    pub fn plus(mut self, entry: &Entry) -> Self {
        self.content.files += 1;
        if entry.kind == Kind::File {
            self.content.bytes = self.content.bytes.saturating_add(entry.size);
        }
        if entry.kind == Kind::File || entry.size >= SHORT_LINK {
            let pages = entry.size.div_ceil(PAGE).saturating_mul(PAGE);
            self.room = self.room.saturating_add(pages);
        }
        self
    }
}

impl<W: Write> SnapshotWriter<W> {
    /// Starts a snapshot.
    pub fn new(file: W) -> io::Result<Self> {
        let mut file = BufWriter::with_capacity(BUFFER, file);
        file.write_all(MAGIC)?;
        Ok(Self { file, size: SnapshotSize::default() })
    }

    /// Adds an entry with its content. Fewer bytes than announced are an error.
    pub fn add(&mut self, entry: &Entry, content: &mut dyn Read) -> io::Result<()> {
        let kind = match entry.kind {
            Kind::Directory => 1_u8,
            Kind::File => 2,
            Kind::Link => 3,
        };
        self.file.write_all(&[kind])?;
        self.file.write_all(&entry.mode.to_le_bytes())?;
        self.file.write_all(&entry.modified.0.to_le_bytes())?;
        self.file.write_all(&entry.modified.1.to_le_bytes())?;
        let length = u32::try_from(entry.path.len()).map_err(|_| malformed())?;
        self.file.write_all(&length.to_le_bytes())?;
        self.file.write_all(&entry.path)?;
        self.file.write_all(&entry.size.to_le_bytes())?;
        if io::copy(&mut content.take(entry.size), &mut self.file)? != entry.size {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.size = self.size.plus(entry);
        Ok(())
    }

    /// The size so far.
    pub fn size(&self) -> SnapshotSize {
        self.size
    }

    /// Writes the trailer, without which a snapshot is invalid.
    pub fn finish(mut self) -> io::Result<SnapshotSize> {
        self.file.write_all(&[END])?;
        for number in [self.size.content.bytes, self.size.content.files, self.size.room] {
            self.file.write_all(&number.to_le_bytes())?;
        }
        self.file.flush()?;
        Ok(self.size)
    }
}

impl<R: Read + Seek> SnapshotReader<R> {
    /// Starts at the first entry.
    pub fn new(mut file: R) -> io::Result<Self> {
        file.seek(SeekFrom::Start(0))?;
        let mut file = BufReader::with_capacity(BUFFER, file);
        let mut magic = [0; MAGIC.len()];
        file.read_exact(&mut magic)?;
        if magic != *MAGIC {
            return Err(malformed());
        }
        Ok(Self { file, left: 0 })
    }

    /// The size of a snapshot, from its trailer.
    pub fn size_of(file: &mut R) -> io::Result<SnapshotSize> {
        file.seek(SeekFrom::End(-END_LENGTH))?;
        let mut end = [0; 1];
        file.read_exact(&mut end)?;
        if end[0] != END {
            return Err(malformed());
        }
        let mut number = || -> io::Result<u64> {
            let mut bytes = [0; 8];
            file.read_exact(&mut bytes)?;
            Ok(u64::from_le_bytes(bytes))
        };
        let (bytes, files, room) = (number()?, number()?, number()?);
        Ok(SnapshotSize { content: WorkspaceSize { bytes, files }, room })
    }

    /// The next entry; `None` at the end. Skips unread content of the current one.
    pub fn next_entry(&mut self) -> io::Result<Option<Entry>> {
        let left = i64::try_from(self.left).map_err(|_| malformed())?;
        self.file.seek_relative(left)?;
        self.left = 0;
        let kind = match u8::from_le_bytes(self.bytes()?) {
            END => return Ok(None),
            1 => Kind::Directory,
            2 => Kind::File,
            3 => Kind::Link,
            _ => return Err(malformed()),
        };
        let mode = u32::from_le_bytes(self.bytes()?);
        let modified = (i64::from_le_bytes(self.bytes()?), u32::from_le_bytes(self.bytes()?));
        let length = u32::from_le_bytes(self.bytes()?) as usize;
        if length > MAX_PATH_LEN {
            return Err(malformed());
        }
        let mut path = vec![0; length];
        self.file.read_exact(&mut path)?;
        let size = u64::from_le_bytes(self.bytes()?);
        self.left = size;
        Ok(Some(Entry { path, kind, mode, modified, size }))
    }

    fn bytes<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.file.read_exact(&mut bytes)?;
        Ok(bytes)
    }
}

/// Reads the content of the current entry.
impl<R: Read + Seek> Read for SnapshotReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
        let count = self.file.read(&mut buffer[..most])?;
        if count == 0 && most > 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.left -= count as u64;
        Ok(count)
    }
}

fn malformed() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "this is not what a workspace is kept as")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    fn entry(path: &[u8], kind: Kind, size: u64) -> Entry {
        Entry { path: path.to_vec(), kind, mode: 0o640, modified: (-7, 5), size }
    }

    fn written() -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut writer = SnapshotWriter::new(&mut bytes).unwrap();
        writer.add(&entry(b"a", Kind::Directory, 0), &mut io::empty()).unwrap();
        writer.add(&entry(b"a/\xff\n", Kind::File, 5), &mut &b"hello and more"[..]).unwrap();
        writer.add(&entry(b"l", Kind::Link, 4), &mut &b"/etc"[..]).unwrap();
        writer.finish().unwrap();
        bytes
    }

    #[test]
    fn what_was_written_reads_back_whether_or_not_it_is_looked_into() {
        let bytes = written();
        let size = SnapshotReader::size_of(&mut Cursor::new(&bytes)).unwrap();
        assert_eq!(size.content, WorkspaceSize { bytes: 5, files: 3 });
        assert_eq!(size.room, 4096);
        let mut reader = SnapshotReader::new(Cursor::new(&bytes)).unwrap();
        let directory = reader.next_entry().unwrap().unwrap();
        assert_eq!(directory, entry(b"a", Kind::Directory, 0));
        assert_eq!(reader.next_entry().unwrap().unwrap().path, b"a/\xff\n");
        let link = reader.next_entry().unwrap().unwrap();
        let mut target = String::new();
        reader.read_to_string(&mut target).unwrap();
        assert_eq!((link.kind, target.as_str()), (Kind::Link, "/etc"));
        assert_eq!(reader.next_entry().unwrap(), None);
    }

    #[test]
    fn a_part_of_a_snapshot_is_none() {
        let bytes = written();
        for length in 0..bytes.len() {
            let part = &bytes[..length];
            let read = SnapshotReader::new(Cursor::new(part)).and_then(|mut reader| {
                while reader.next_entry()?.is_some() {
                    io::copy(&mut reader, &mut io::sink())?;
                }
                Ok(())
            });
            // The last 24 bytes are the totals, which a reader of entries does not need.
            assert!(read.is_err() || length + 24 >= bytes.len(), "{length} of {}", bytes.len());
        }
    }

    #[test]
    fn a_file_that_is_shorter_than_announced_is_an_error() {
        let mut writer = SnapshotWriter::new(Vec::new()).unwrap();
        assert!(writer.add(&entry(b"a", Kind::File, 9), &mut &b"short"[..]).is_err());
    }
}
