//! One entry of the compile cache as a file. All numbers are little-endian:
//!
//! ```text
//! magic           8 bytes
//! version         u32
//! key            32 bytes
//! SHA-256        32 bytes, of everything that follows
//! table length    u64
//! table           count of files u64, for each (path length u64, path, executable u8, length u64),
//!                 then the lengths of stdout, stderr and output, u64 each
//! contents        of the files in their order, then of stdout, stderr and output
//! ```
//!
//! All lengths come before the contents, so that a reader can read each content once, directly into its final buffer.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::sync::Arc;

use sandbox_core::{Artefacts, InputFile};
use sha2::{Digest, Sha256};

use super::super::Key;
use super::Compiled;

const MAGIC: &[u8; 8] = b"\x89sbxcmp\n";
const VERSION: u32 = 1;

/// Length of the part before the hashed bytes.
const HEADER: usize = MAGIC.len() + size_of::<u32>() + 32 + 32;

/// Bytes to read before hashing them: few enough to stay in the CPU cache.
const CHUNK: usize = 128 * 1024;

/// An entry ready to be written. The contents are not copied.
pub(super) struct Encoded<'a> {
    head: Vec<u8>,
    contents: Vec<&'a [u8]>,
}

/// Why a file has no usable entry.
#[derive(Debug)]
pub(super) enum Unreadable {
    /// The file is not an intact entry of this key and version.
    Damaged,
    /// An I/O error.
    Io,
}

impl<'a> Encoded<'a> {
    pub(super) fn new(key: &Key, compiled: &'a Compiled) -> Self {
        let Compiled { artefacts, stdout, stderr, output } = compiled;
        let files = &artefacts.files;
        let mut table = Vec::new();
        let mut contents = Vec::with_capacity(files.len() + 3);
        put_length(&mut table, files.len());
        for file in files {
            let path = file.path.as_str();
            put_length(&mut table, path.len());
            table.extend(path.as_bytes());
            table.push(file.executable.into());
            put_length(&mut table, file.contents.len());
            contents.push(file.contents.as_slice());
        }
        for stream in [stdout, stderr, output] {
            put_length(&mut table, stream.len());
            contents.push(stream);
        }
        let mut covered = Vec::with_capacity(size_of::<u64>() + table.len());
        put_length(&mut covered, table.len());
        covered.append(&mut table);
        let mut hash = Sha256::new_with_prefix(&covered);
        for content in &contents {
            hash.update(content);
        }

        let mut head = Vec::with_capacity(HEADER + covered.len());
        head.extend(MAGIC);
        head.extend(VERSION.to_le_bytes());
        head.extend(key.as_bytes());
        head.extend(hash.finalize());
        head.append(&mut covered);
        Self { head, contents }
    }

    /// Length of the file.
    pub(super) fn length(&self) -> u64 {
        let contents = self.contents.iter().map(|content| content.len()).sum::<usize>();
        (self.head.len() + contents) as u64
    }

    pub(super) fn write_to(&self, file: &mut File) -> io::Result<()> {
        let mut file = BufWriter::new(file);
        file.write_all(&self.head)?;
        for content in &self.contents {
            file.write_all(content)?;
        }
        file.flush()
    }
}

fn put_length(bytes: &mut Vec<u8>, length: usize) {
    bytes.extend((length as u64).to_le_bytes());
}

/// Reads the entry of a key and checks everything about it.
pub(super) fn read(file: &File, key: &Key) -> Result<Compiled, Unreadable> {
    let length = file.metadata()?.len();
    let mut file = BufReader::new(file);
    let mut header = [0; HEADER];
    file.read_exact(&mut header)?;
    let mut fields = Fields(&header);
    let known = fields.take(MAGIC.len())? == MAGIC
        && fields.take(size_of::<u32>())? == VERSION.to_le_bytes()
        && fields.take(key.as_bytes().len())? == key.as_bytes();
    if !known {
        return Err(Unreadable::Damaged);
    }
    let wanted = fields.0;

    let unread = length.checked_sub(HEADER as u64).ok_or(Unreadable::Damaged)?;
    let mut covered = Covered { file, unread, hash: Sha256::new() };
    let table_length = covered.bytes(size_of::<u64>() as u64)?;
    let table_length = Fields(&table_length).number()?;
    let table = covered.bytes(table_length)?;
    let compiled = contents(key, &mut Fields(&table), &mut covered)?;
    let complete = covered.unread == 0 && covered.hash.finalize()[..] == *wanted;
    if complete { Ok(compiled) } else { Err(Unreadable::Damaged) }
}

fn contents(
    key: &Key,
    table: &mut Fields<'_>,
    covered: &mut Covered<impl Read>,
) -> Result<Compiled, Unreadable> {
    let mut files = Vec::new();
    for _ in 0..table.number()? {
        let path_length = table.number()?.try_into().map_err(|_| Unreadable::Damaged)?;
        let path = str::from_utf8(table.take(path_length)?).map_err(|_| Unreadable::Damaged)?;
        let executable = match table.take(1)? {
            [0] => false,
            [1] => true,
            _ => return Err(Unreadable::Damaged),
        };
        let contents = covered.bytes(table.number()?)?;
        let path = path.parse().map_err(|_| Unreadable::Damaged)?;
        files.push(InputFile { path, contents, executable });
    }
    let artefacts = Arc::new(Artefacts { key: Some(key.to_string()), files });
    let mut stream = || covered.bytes(table.number()?);
    let compiled = Compiled { artefacts, stdout: stream()?, stderr: stream()?, output: stream()? };
    if table.0.is_empty() { Ok(compiled) } else { Err(Unreadable::Damaged) }
}

/// The part of a file that its hash covers.
struct Covered<R> {
    file: R,
    unread: u64,
    hash: Sha256,
}

impl<R: Read> Covered<R> {
    /// The next bytes. Checks the length against the file before allocating memory.
    fn bytes(&mut self, length: u64) -> Result<Vec<u8>, Unreadable> {
        self.unread = self.unread.checked_sub(length).ok_or(Unreadable::Damaged)?;
        let mut bytes = vec![0; usize::try_from(length).map_err(|_| Unreadable::Damaged)?];
        for chunk in bytes.chunks_mut(CHUNK) {
            self.file.read_exact(chunk)?;
            self.hash.update(chunk);
        }
        Ok(bytes)
    }
}

/// Reads fields from the front of a byte slice.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], Unreadable> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(Unreadable::Damaged)?;
        self.0 = rest;
        Ok(taken)
    }

    fn number(&mut self) -> Result<u64, Unreadable> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(Unreadable::Damaged)?;
        self.0 = rest;
        Ok(u64::from_le_bytes(*taken))
    }
}

impl From<io::Error> for Unreadable {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => Self::Damaged,
            _ => Self::Io,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::KeyBuilder;
    use std::io::{Seek, SeekFrom};

    fn key() -> Key {
        KeyBuilder::new("test").finish()
    }

    fn sample() -> Compiled {
        with(vec![file("program", b"\x7fELF and more", true), file("data/ünïcode", b"", false)])
    }

    fn file(path: &str, contents: &[u8], executable: bool) -> InputFile {
        InputFile { path: path.parse().unwrap(), contents: contents.into(), executable }
    }

    fn with(files: Vec<InputFile>) -> Compiled {
        Compiled {
            artefacts: Arc::new(Artefacts { key: Some(key().to_string()), files }),
            stdout: b"out".to_vec(),
            stderr: b"warning\xff".to_vec(),
            output: b"outwarning\xff".to_vec(),
        }
    }

    /// The file as it is written.
    fn written(compiled: &Compiled) -> Vec<u8> {
        let mut file = tempfile::tempfile().unwrap();
        let encoded = Encoded::new(&key(), compiled);
        encoded.write_to(&mut file).unwrap();
        let mut bytes = Vec::new();
        file.rewind().unwrap();
        file.read_to_end(&mut bytes).unwrap();
        assert_eq!(bytes.len() as u64, encoded.length());
        bytes
    }

    fn read_back(bytes: &[u8], key: &Key) -> Result<Compiled, Unreadable> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        file.seek(SeekFrom::Start(0)).unwrap();
        read(&file, key)
    }

    #[test]
    fn what_is_written_reads_back() {
        let long: Vec<u8> = (0..=250).cycle().take(3 * CHUNK + 7).collect();
        for compiled in [with(Vec::new()), sample(), with(vec![file("program", &long, true)])] {
            assert_eq!(read_back(&written(&compiled), &key()).unwrap(), compiled);
        }
    }

    #[test]
    fn another_key_is_another_entry() {
        let other = KeyBuilder::new("other").finish();
        let found = read_back(&written(&sample()), &other);
        assert!(matches!(found, Err(Unreadable::Damaged)), "{found:?}");
    }

    #[test]
    fn a_change_of_any_bit_is_noticed() {
        let good = written(&sample());
        for position in 0..good.len() {
            for bit in 0..8 {
                let mut bytes = good.clone();
                bytes[position] ^= 1 << bit;
                let found = read_back(&bytes, &key());
                let noticed = matches!(found, Err(Unreadable::Damaged));
                assert!(noticed, "bit {bit} of byte {position}: {found:?}");
            }
        }
    }

    #[test]
    fn a_file_of_another_length_is_noticed() {
        let good = written(&sample());
        for length in 0..good.len() {
            let found = read_back(&good[..length], &key());
            assert!(matches!(found, Err(Unreadable::Damaged)), "{length} bytes: {found:?}");
        }
        let longer = [&good[..], b"x"].concat();
        assert!(matches!(read_back(&longer, &key()), Err(Unreadable::Damaged)));
    }

    #[test]
    fn a_table_with_the_right_hash_is_still_checked() {
        // Lengths that no file has, in an entry that is otherwise in order.
        let endless = u64::MAX.to_le_bytes();
        let zero = [0; 8];
        let one = 1_u64.to_le_bytes();
        for table in [
            [&endless[..], &zero, &zero, &zero].concat(),
            [&zero[..], &endless, &zero, &zero].concat(),
            [&one[..], &endless, &zero, &zero].concat(),
            [&one[..], &zero, &[2], &zero, &zero, &zero, &zero].concat(),
            [&one[..], &one, &[0xff], &[0], &zero, &zero, &zero, &zero].concat(),
            [&zero[..], &zero, &zero, &zero, b"left over"].concat(),
        ] {
            let mut covered = (table.len() as u64).to_le_bytes().to_vec();
            covered.extend(&table);
            let mut bytes = written(&Compiled::default())[..HEADER - 32].to_vec();
            bytes.extend(Sha256::digest(&covered));
            bytes.extend(&covered);
            let found = read_back(&bytes, &key());
            assert!(matches!(found, Err(Unreadable::Damaged)), "{table:?}: {found:?}");
        }
    }
}
