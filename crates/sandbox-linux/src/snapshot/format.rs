use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};

use sandbox_core::WorkspaceSize;

/// Longer paths are not kept: nobody could make such a file again. It is the kernel's bound with room for
/// the directory it is joined to.
pub const MAX_PATH_LEN: usize = 2048;

const MAGIC: &[u8; 8] = b"sbxwork1";
const END: u8 = 0;
const END_LENGTH: i64 = 1 + 3 * 8;
const BUFFER: usize = 1 << 17;
/// What tmpfs hands out.
const PAGE: u64 = 4096;
/// A link up to here lies in the inode.
const SHORT_LINK: u64 = 128;

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A directory. It stands before everything in it.
    Directory,
    /// A regular file; its bytes follow.
    File,
    /// A symbolic link; where it leads follows, and is never looked at.
    Link,
}

/// One name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Where it is, below the top. Bytes as the kernel takes them, which need not be text.
    pub path: Vec<u8>,
    /// What it stands for.
    pub kind: Kind,
    /// Permissions: nine bits.
    pub mode: u32,
    /// When it was changed: seconds since 1970, and nanoseconds.
    pub modified: (i64, u32),
    /// How many bytes follow.
    pub size: u64,
}

/// How much a snapshot holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SnapshotSize {
    /// As it is told.
    pub told: WorkspaceSize,
    /// Bytes it takes once it is laid out, in whole pages: a thousand files of one byte take more than a
    /// thousand bytes.
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
    /// Of the entry that was read last.
    left: u64,
}

impl SnapshotSize {
    /// With one more entry.
    #[must_use]
    pub fn plus(mut self, entry: &Entry) -> Self {
        self.told.files += 1;
        if entry.kind == Kind::File {
            self.told.bytes = self.told.bytes.saturating_add(entry.size);
        }
        if entry.kind == Kind::File || entry.size >= SHORT_LINK {
            let pages = entry.size.div_ceil(PAGE).saturating_mul(PAGE);
            self.room = self.room.saturating_add(pages);
        }
        self
    }
}

impl<W: Write> SnapshotWriter<W> {
    /// Begins one.
    pub fn new(file: W) -> io::Result<Self> {
        let mut file = BufWriter::with_capacity(BUFFER, file);
        file.write_all(MAGIC)?;
        Ok(Self { file, size: SnapshotSize::default() })
    }

    /// Adds a name, with as many bytes as it says. Fewer are an error.
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

    /// How much there is so far.
    pub fn size(&self) -> SnapshotSize {
        self.size
    }

    /// Writes the end, without which the whole does not count.
    pub fn finish(mut self) -> io::Result<SnapshotSize> {
        self.file.write_all(&[END])?;
        for number in [self.size.told.bytes, self.size.told.files, self.size.room] {
            self.file.write_all(&number.to_le_bytes())?;
        }
        self.file.flush()?;
        Ok(self.size)
    }
}

impl<R: Read + Seek> SnapshotReader<R> {
    /// Begins at the beginning.
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

    /// How much a snapshot holds, from its end.
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
        Ok(SnapshotSize { told: WorkspaceSize { bytes, files }, room })
    }

    /// The next name; none at the end. What was not read of the one before is passed over.
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

/// The bytes of the entry that was read last.
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
        assert_eq!(size.told, WorkspaceSize { bytes: 5, files: 3 });
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
            // The last 24 bytes are the totals, which a reader of entries has no need of.
            assert!(read.is_err() || length + 24 >= bytes.len(), "{length} of {}", bytes.len());
        }
    }

    #[test]
    fn a_file_that_is_shorter_than_it_says_is_an_error() {
        let mut writer = SnapshotWriter::new(Vec::new()).unwrap();
        assert!(writer.add(&entry(b"a", Kind::File, 9), &mut &b"short"[..]).is_err());
    }
}
