//! Messages on a byte stream: four bytes of length, then so many bytes of one [`Message`].

use alloc::vec;
use alloc::vec::Vec;

use crate::{DecodeError, Message, Writer};

/// Length of the header.
pub const HEADER_BYTES: usize = 4;
/// Maximum length of a message. Senders cut what they send; receivers refuse longer frames.
pub const MAX_FRAME_BYTES: usize = 1 << 30;

/// The header for a message of this length.
pub fn header(length: usize) -> Result<[u8; HEADER_BYTES], DecodeError> {
    match u32::try_from(length) {
        Ok(header) if length <= MAX_FRAME_BYTES => Ok(header.to_le_bytes()),
        _ => Err(DecodeError::TooLong),
    }
}

/// The length of the message that follows a header. More than `max_bytes` is an error.
pub fn length(header: [u8; HEADER_BYTES], max_bytes: usize) -> Result<usize, DecodeError> {
    let length = usize::try_from(u32::from_le_bytes(header)).map_err(|_| DecodeError::TooLong)?;
    if length > max_bytes.min(MAX_FRAME_BYTES) { Err(DecodeError::TooLong) } else { Ok(length) }
}

/// Encodes a message with its header.
pub fn encode<'a>(message: &impl Message<'a>) -> Result<Vec<u8>, DecodeError> {
    let mut writer = Writer::append_to(vec![0; HEADER_BYTES]);
    message.encode_to(&mut writer);
    let mut frame = writer.into_bytes();
    let header = header(frame.len() - HEADER_BYTES)?;
    frame[..HEADER_BYTES].copy_from_slice(&header);
    Ok(frame)
}

/// Finds the first message in bytes that were received: the message, and the length of its whole frame. None if the frame
/// is not complete yet. A frame longer than `max_bytes` is an error before it is complete.
pub fn split(bytes: &[u8], max_bytes: usize) -> Result<Option<(&[u8], usize)>, DecodeError> {
    let Some((header, rest)) = bytes.split_first_chunk::<HEADER_BYTES>() else { return Ok(None) };
    let length = length(*header, max_bytes)?;
    Ok(rest.get(..length).map(|message| (message, HEADER_BYTES + length)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_cut_from_a_stream_as_they_arrive() {
        let stream = [encode(&"one").unwrap(), encode(&"").unwrap()].concat();
        for cut in 0..HEADER_BYTES + 11 {
            assert_eq!(split(&stream[..cut], 100), Ok(None), "{cut}");
        }
        let (first, length) = split(&stream, 100).unwrap().unwrap();
        assert_eq!((first, length), (&"one".encode()[..], HEADER_BYTES + 11));
        let (second, length) = split(&stream[length..], 100).unwrap().unwrap();
        assert_eq!((second, length), (&"".encode()[..], HEADER_BYTES + 8));
    }

    #[test]
    fn a_frame_that_is_too_long_is_refused_by_its_header() {
        assert_eq!(split(&header(101).unwrap(), 100), Err(DecodeError::TooLong));
        assert_eq!(split(&header(100).unwrap(), 100), Ok(None));
        // No receiver accepts more than the protocol's maximum, and no sender sends it.
        assert_eq!(split(&[0xff; HEADER_BYTES], usize::MAX), Err(DecodeError::TooLong));
        assert_eq!(header(MAX_FRAME_BYTES + 1), Err(DecodeError::TooLong));
        assert!(header(MAX_FRAME_BYTES).is_ok());
    }
}
