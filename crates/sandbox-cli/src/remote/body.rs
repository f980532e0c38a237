use std::io::{self, BufRead, BufReader, Read};

/// How the end of a body is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// So many bytes are left.
    Length(u64),
    /// Chunks, each with its size before it.
    Chunks(Chunk),
    /// It ends when the connection does.
    UntilClose,
}

/// Where in a chunk the reader is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Chunk {
    /// Before the size of the next one.
    Start,
    /// Within one that has so many bytes left, at least one.
    Within(u64),
    /// The last one was read.
    Over,
}

/// The body of an answer, without what frames it. An end that comes too early is an error.
#[derive(Debug)]
pub(super) struct Body<R> {
    source: BufReader<R>,
    framing: Framing,
}

const MAX_CHUNK_LINE_BYTES: u64 = 4096;
const MAX_TRAILERS: usize = 64;

impl<R: Read> Body<R> {
    pub(super) fn new(source: BufReader<R>, framing: Framing) -> Self {
        Self { source, framing }
    }

    /// What it is read from.
    pub(super) fn connection(&mut self) -> &mut R {
        self.source.get_mut()
    }

    fn next_chunk(&mut self) -> io::Result<Chunk> {
        let start = line(&mut self.source, MAX_CHUNK_LINE_BYTES)?;
        let size = start.split(';').next().unwrap_or_default().trim();
        let is_hex = !size.is_empty() && size.bytes().all(|byte| byte.is_ascii_hexdigit());
        let size = u64::from_str_radix(size, 16).ok().filter(|_| is_hex);
        match size.ok_or_else(|| wrong("a chunk without a size"))? {
            0 => {
                for _ in 0..MAX_TRAILERS {
                    if line(&mut self.source, MAX_CHUNK_LINE_BYTES)?.is_empty() {
                        return Ok(Chunk::Over);
                    }
                }
                Err(wrong("too many lines after its last chunk"))
            }
            size => Ok(Chunk::Within(size)),
        }
    }

    fn read_some(&mut self, buffer: &mut [u8], left: u64) -> io::Result<(usize, u64)> {
        let most = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
        let count = self.source.read(&mut buffer[..most])?;
        if count == 0 && most > 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok((count, left - count as u64))
    }
}

impl<R: Read> Read for Body<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        if self.framing == Framing::Chunks(Chunk::Start) {
            self.framing = Framing::Chunks(self.next_chunk()?);
        }
        match self.framing {
            Framing::UntilClose => self.source.read(buffer),
            Framing::Length(0) | Framing::Chunks(Chunk::Over | Chunk::Start) => Ok(0),
            Framing::Length(left) => {
                let (count, left) = self.read_some(buffer, left)?;
                self.framing = Framing::Length(left);
                Ok(count)
            }
            Framing::Chunks(Chunk::Within(left)) => {
                let (count, left) = self.read_some(buffer, left)?;
                self.framing = Framing::Chunks(Chunk::Within(left));
                if left == 0 {
                    if !line(&mut self.source, 2)?.is_empty() {
                        return Err(wrong("a chunk longer than its size"));
                    }
                    self.framing = Framing::Chunks(Chunk::Start);
                }
                Ok(count)
            }
        }
    }
}

/// A line without its end, which may be at most this long, end included.
pub(super) fn line(source: &mut impl BufRead, longest: u64) -> io::Result<String> {
    let mut bytes = Vec::new();
    source.take(longest).read_until(b'\n', &mut bytes)?;
    if bytes.pop() != Some(b'\n') {
        let too_long = bytes.len() as u64 + 1 >= longest;
        return Err(if too_long {
            wrong("a line that is too long")
        } else {
            io::ErrorKind::UnexpectedEof.into()
        });
    }
    if bytes.last() == Some(&b'\r') {
        bytes.pop();
    }
    String::from_utf8(bytes).map_err(|_| wrong("a line that is no text"))
}

/// An answer that is not HTTP, or no HTTP that we take.
pub(super) fn wrong(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("the answer has {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, framing: Framing) -> Result<String, io::ErrorKind> {
        let mut body = Body::new(BufReader::with_capacity(3, text.as_bytes()), framing);
        let mut whole = String::new();
        body.read_to_string(&mut whole).map(|_| whole).map_err(|error| error.kind())
    }

    #[test]
    fn chunks_are_joined_and_nothing_after_them_is_read() {
        let chunks = Framing::Chunks(Chunk::Start);
        let text = "3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\nmore";
        assert_eq!(read(text, chunks).unwrap(), "abc0123456789");
        assert_eq!(read("0\r\n\r\n", chunks).unwrap(), "");
    }

    #[test]
    fn a_chunked_body_that_is_cut_or_wrong_is_an_error() {
        let chunks = Framing::Chunks(Chunk::Start);
        for text in ["", "3\r\nab", "3\r\nabc", "3\r\nabc\r\n", "3\r\nabc\r\n0\r\n"] {
            assert_eq!(read(text, chunks), Err(io::ErrorKind::UnexpectedEof), "{text:?}");
        }
        let long = format!("{}\r\n", "0".repeat(5000));
        for text in ["x\r\n", "\r\n", "-1\r\n", "+1\r\na\r\n", "2\r\nabc\r\n0\r\n\r\n", &long] {
            assert_eq!(read(text, chunks), Err(io::ErrorKind::InvalidData), "{text:?}");
        }
    }

    #[test]
    fn a_length_is_kept_to() {
        assert_eq!(read("abcdef", Framing::Length(4)).unwrap(), "abcd");
        assert_eq!(read("abc", Framing::Length(4)), Err(io::ErrorKind::UnexpectedEof));
        assert_eq!(read("abc", Framing::UntilClose).unwrap(), "abc");
    }
}
