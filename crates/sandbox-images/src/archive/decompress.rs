use std::io::{self, BufRead, BufReader, Cursor, Read};

use flate2::bufread::MultiGzDecoder;

use super::zstd::Frames;

const GZIP: [u8; 2] = [0x1f, 0x8b];

/// The content of something that may be compressed. What it is shows in its first bytes: what a manifest says
/// about it is as often wrong as not.
pub(crate) fn decompress<'a>(mut source: impl Read + 'a) -> io::Result<Box<dyn Read + 'a>> {
    let mut first = Vec::new();
    source.by_ref().take(4).read_to_end(&mut first)?;
    let is_gzip = first.starts_with(&GZIP);
    let is_zstd = Frames::<io::Empty>::begins_with(&first);
    let source = BufReader::with_capacity(1 << 16, Cursor::new(first).chain(source));
    Ok(if is_gzip {
        // Several members one behind the other are one content.
        Box::new(MultiGzDecoder::new(source))
    } else if is_zstd {
        Box::new(Frames::new(source))
    } else {
        Box::new(Plain(source))
    })
}

/// Not compressed.
struct Plain<R>(R);

impl<R: BufRead> Read for Plain<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::{Compression, write::GzEncoder};
    use std::io::Write;

    fn read(bytes: &[u8]) -> io::Result<Vec<u8>> {
        let mut content = Vec::new();
        decompress(bytes)?.read_to_end(&mut content)?;
        Ok(content)
    }

    fn gzip(content: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(content).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn what_is_compressed_and_what_is_not_comes_out_the_same() {
        for content in [&b""[..], b"a", b"more than four bytes"] {
            assert_eq!(read(content).unwrap(), content);
            assert_eq!(read(&gzip(content)).unwrap(), content);
        }
        let members = [gzip(b"one "), gzip(b"two")].concat();
        assert_eq!(read(&members).unwrap(), b"one two");
    }

    #[test]
    fn what_breaks_off_is_an_error_and_no_end() {
        let whole = gzip(&[7; 10_000]);
        for length in [5, whole.len() / 2, whole.len() - 1] {
            assert!(read(&whole[..length]).is_err(), "{length}");
        }
    }
}
