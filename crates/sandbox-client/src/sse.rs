use std::io::{self, BufRead, BufReader, Read};

/// The messages of a `text/event-stream`: their data, of at most so many bytes each. Ids and names are ignored, because
/// events contain their number and type. A message that the end of the stream cuts off is dropped.
#[derive(Debug)]
pub(crate) struct Messages<R> {
    source: BufReader<R>,
    max_bytes: u64,
}

impl<R: Read> Messages<R> {
    pub(crate) fn new(source: R, max_bytes: u64) -> Self {
        Self { source: BufReader::new(source), max_bytes }
    }

    fn read(&mut self) -> io::Result<Option<String>> {
        let mut data: Option<String> = None;
        let mut left = self.max_bytes;
        loop {
            let mut line = Vec::new();
            self.source.by_ref().take(left).read_until(b'\n', &mut line)?;
            left -= line.len() as u64;
            if line.pop() != Some(b'\n') {
                return if left == 0 { Err(invalid("it exceeds 256M")) } else { Ok(None) };
            }
            if line.last() == Some(&b'\r') {
                line.pop();
            }
            if line.is_empty() {
                if data.is_some() {
                    return Ok(data);
                }
                left = self.max_bytes;
            } else if let Some(value) = value_of(b"data", &line) {
                let value = std::str::from_utf8(value).map_err(|_| invalid("it is not UTF-8"))?;
                match &mut data {
                    Some(data) => {
                        data.push('\n');
                        data.push_str(value);
                    }
                    None => data = Some(value.to_owned()),
                }
            }
        }
    }
}

impl<R: Read> Iterator for Messages<R> {
    type Item = io::Result<String>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read().transpose()
    }
}

/// The value of a line if it is of this field. Comments, which keep a connection alive, are of none.
fn value_of<'a>(field: &[u8], line: &'a [u8]) -> Option<&'a [u8]> {
    let value = line.strip_prefix(field)?;
    if value.is_empty() {
        return Some(value);
    }
    let value = value.strip_prefix(b":")?;
    Some(value.strip_prefix(b" ").unwrap_or(value))
}

fn invalid(reason: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &[u8], max_bytes: u64) -> io::Result<Vec<String>> {
        Messages::new(text, max_bytes).collect()
    }

    #[test]
    fn messages_are_parsed() {
        let long = format!("data: {}\n\n", "x".repeat(90));
        for (text, expected) in [
            ("", &[][..]),
            ("data: a\n\n", &["a"]),
            (": hello\n\nid: 1\nevent: stdout\ndata: a\n\n:\r\ndata:b\r\n\r\n", &["a", "b"]),
            ("data: a\ndata:  b\n\n", &["a\n b"]),
            ("data\ndata:\n\n", &["\n"]),
            ("datax: a\nxdata: b\n data: c\n\n", &[]),
            // Cut off by the end of the stream.
            ("data: a\n\ndata: b", &["a"]),
            ("data: a\n\ndata: b\n", &["a"]),
            (&long, &[&"x".repeat(90)]),
        ] {
            assert_eq!(read(text.as_bytes(), 100).unwrap(), expected, "{text:?}");
        }
    }

    #[test]
    fn the_maximum_is_that_of_one_message() {
        for (text, is_accepted) in [
            (&b"data: a\n\ndata: b\n\n"[..], true),
            (b":\n\n:\n\n:\n\n:\n\n", true),
            (b"data: aaa\n\n", false),
            (b"data: a\ndata: a\n\n", false),
            (b": comment without end", false),
            (b"data: \xff\n\n", false),
        ] {
            assert_eq!(read(text, 9).is_ok(), is_accepted, "{}", text.escape_ascii());
        }
    }
}
