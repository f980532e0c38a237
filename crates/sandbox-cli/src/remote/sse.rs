use std::io::{self, BufRead, BufReader, Read};

use super::body::wrong;
use super::http::MAX_RESPONSE_BYTES;

/// One message of a stream of server-sent events. Their ids are not kept: events carry their number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) data: String,
}

/// Reads the messages of a `text/event-stream`.
pub(super) struct Messages<R> {
    source: BufReader<R>,
    longest: u64,
}

impl<R: Read> Messages<R> {
    pub(super) fn new(source: R) -> Self {
        Self { source: BufReader::new(source), longest: MAX_RESPONSE_BYTES }
    }

    /// The next message, or nothing at the end. One that the end cut off does not count.
    pub(super) fn next(&mut self) -> io::Result<Option<Message>> {
        let mut data: Option<String> = None;
        let mut left = self.longest;
        loop {
            let mut line = Vec::new();
            let mut source = self.source.by_ref().take(left);
            source.read_until(b'\n', &mut line)?;
            left -= line.len() as u64;
            if line.pop() != Some(b'\n') {
                return if left == 0 { Err(wrong("a message that is too long")) } else { Ok(None) };
            }
            if line.last() == Some(&b'\r') {
                line.pop();
            }
            if line.is_empty() {
                if let Some(data) = data.take() {
                    return Ok(Some(Message { data }));
                }
                left = self.longest;
                continue;
            }
            if let Some(more) = field(&line, b"data") {
                let more =
                    std::str::from_utf8(more).map_err(|_| wrong("bytes that are no text"))?;
                match &mut data {
                    Some(data) => {
                        data.push('\n');
                        data.push_str(more);
                    }
                    None => data = Some(more.to_owned()),
                }
            }
        }
    }
}

/// The value of a line if it is of this field. Comments, which keep a connection alive, are of none.
fn field<'a>(line: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let value = line.strip_prefix(name)?;
    if value.is_empty() {
        return Some(value);
    }
    let value = value.strip_prefix(b":")?;
    Some(value.strip_prefix(b" ").unwrap_or(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, longest: u64) -> io::Result<Vec<String>> {
        let mut messages = Messages { source: BufReader::new(text.as_bytes()), longest };
        let mut read = Vec::new();
        while let Some(message) = messages.next()? {
            read.push(message.data);
        }
        Ok(read)
    }

    #[test]
    fn messages_are_told_apart_and_comments_are_passed_over() {
        let text = ": hello\n\nid: 1\nevent: stdout\ndata: a\n\n:\r\ndata:b\r\ndata:  c\r\ndatax: d\r\n\r\n";
        assert_eq!(read(text, 100).unwrap(), ["a", "b\n c"]);
    }

    #[test]
    fn a_message_that_is_cut_off_is_none() {
        for text in ["data: a\n\ndata: b", "data: a\n\ndata: b\n", "data: a\n\n"] {
            assert_eq!(read(text, 100).unwrap(), ["a"], "{text:?}");
        }
    }

    #[test]
    fn length_is_bounded_for_each_message() {
        assert_eq!(read("data: a\n\ndata: b\n\n", 9).unwrap(), ["a", "b"]);
        assert!(read("data: aaa\n\n", 9).is_err());
        assert!(read("data: a\ndata: a\n\n", 9).is_err());
    }
}
