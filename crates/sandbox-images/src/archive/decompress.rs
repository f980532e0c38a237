use std::io::{self, BufRead, BufReader, Cursor, Read};

use flate2::bufread::MultiGzDecoder;

use super::zstd::Frames;

const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Decompresses a stream, if it is compressed. The format is detected by the first bytes, because the media types of
/// manifests are often wrong.
pub(crate) fn decompress<'a>(mut source: impl Read + 'a) -> io::Result<Box<dyn Read + 'a>> {
    let mut first = Vec::new();
    source.by_ref().take(4).read_to_end(&mut first)?;
    let is_gzip = first.starts_with(&GZIP);
    let is_zstd = Frames::<io::Empty>::begins_with(&first);
    let source = BufReader::with_capacity(1 << 16, Cursor::new(first).chain(source));
    Ok(if is_gzip {
        // A gzip stream may consist of several members.
        Box::new(MultiGzDecoder::new(source))
    } else if is_zstd {
        Box::new(Frames::new(source))
    } else {
        Box::new(Plain(source))
    })
}

/// An uncompressed stream.
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
    fn compressed_and_plain_streams_give_the_same_content() {
        for content in [&b""[..], b"a", b"more than four bytes"] {
            assert_eq!(read(content).unwrap(), content);
            assert_eq!(read(&gzip(content)).unwrap(), content);
        }
        let members = [gzip(b"one "), gzip(b"two")].concat();
        assert_eq!(read(&members).unwrap(), b"one two");
    }

    #[test]
    fn a_truncated_stream_is_an_error() {
        let whole = gzip(&[7; 10_000]);
        for length in [5, whole.len() / 2, whole.len() - 1] {
            assert!(read(&whole[..length]).is_err(), "{length}");
        }
    }
}
