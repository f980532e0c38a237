//! The frames between a client and its helper: a length, a kind, and the bytes.

use std::io::{self, ErrorKind, Read, Write};

/// What the bytes of a frame are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    /// A message of ours, as JSON.
    Message = b'm',
    /// An event of the execution, as the library writes it.
    Event = b'e',
    /// The bytes of a file of the request.
    File = b'f',
    /// Standard input for the program; nothing at its end.
    Input = b'i',
}

/// The largest request is a project whose files are bounded by the kernel's memory alone. A length
/// beyond this is no length.
const MAX_FRAME_BYTES: u32 = u32::MAX / 2;
const HEAD: usize = 5;

/// Frames up to this size are written in one piece.
const SMALL: usize = 64 * 1024;

/// Writes one frame.
pub(super) fn write(mut to: impl Write, kind: Kind, bytes: &[u8]) -> io::Result<()> {
    let length = u32::try_from(bytes.len()).ok().filter(|length| *length <= MAX_FRAME_BYTES);
    let length =
        length.ok_or_else(|| io::Error::new(ErrorKind::InvalidInput, "it is too large"))?;
    let (first, rest) = bytes.split_at(bytes.len().min(SMALL));
    let mut frame = Vec::with_capacity(HEAD + first.len());
    frame.extend_from_slice(&length.to_le_bytes());
    frame.push(kind as u8);
    frame.extend_from_slice(first);
    to.write_all(&frame)?;
    to.write_all(rest)
}

/// Reads one frame; none if the other side has said all it had to say.
pub(super) fn read(mut from: impl Read) -> io::Result<Option<(Kind, Vec<u8>)>> {
    let mut head = [0; HEAD];
    if !begins(&mut from, &mut head)? {
        return Ok(None);
    }
    let [a, b, c, d, kind] = head;
    let length = u32::from_le_bytes([a, b, c, d]);
    let kind = match kind {
        b'm' => Kind::Message,
        b'e' => Kind::Event,
        b'f' => Kind::File,
        b'i' => Kind::Input,
        _ => return Err(wrong("of no known kind")),
    };
    if length > MAX_FRAME_BYTES {
        return Err(wrong("that is too long"));
    }
    // The length is not believed before the bytes are there.
    let mut bytes = Vec::new();
    from.take(length.into()).read_to_end(&mut bytes)?;
    if bytes.len() as u64 != u64::from(length) {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    Ok(Some((kind, bytes)))
}

/// Whether another frame begins; an end in the middle of its head is an error.
fn begins(from: &mut impl Read, head: &mut [u8]) -> io::Result<bool> {
    let count = loop {
        match from.read(head) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            result => break result?,
        }
    };
    if count == 0 {
        return Ok(false);
    }
    from.read_exact(&mut head[count..])?;
    Ok(true)
}

fn wrong(what: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, format!("a message {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_read_as_they_were_written() {
        let mut wire = Vec::new();
        write(&mut wire, Kind::Message, b"{}").unwrap();
        write(&mut wire, Kind::Input, b"").unwrap();
        write(&mut wire, Kind::Event, b"\xff").unwrap();
        let large: Vec<u8> = (0..=250).cycle().take(3 * SMALL + 1).collect();
        write(&mut wire, Kind::File, &large).unwrap();
        let mut rest = wire.as_slice();
        assert_eq!(read(&mut rest).unwrap(), Some((Kind::Message, b"{}".to_vec())));
        assert_eq!(read(&mut rest).unwrap(), Some((Kind::Input, Vec::new())));
        assert_eq!(read(&mut rest).unwrap(), Some((Kind::Event, b"\xff".to_vec())));
        assert_eq!(read(&mut rest).unwrap(), Some((Kind::File, large)));
        assert_eq!(read(&mut rest).unwrap(), None);
    }

    #[test]
    fn what_is_cut_short_or_no_frame_is_an_error() {
        let mut whole = Vec::new();
        write(&mut whole, Kind::Message, b"abc").unwrap();
        for length in 1..whole.len() {
            assert!(read(&whole[..length]).is_err(), "{length} bytes were taken");
        }
        assert!(read(&b"\x01\0\0\0?x"[..]).is_err());
        assert!(read(&b"\xff\xff\xff\xffmx"[..]).is_err());
    }
}
