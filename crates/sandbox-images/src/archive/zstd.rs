use std::io::{self, BufRead, Read};

use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

/// All frames of a zstd stream, one behind the other.
///
/// Builders write several, and frames that are to be skipped, with tables of contents for those who fetch
/// parts. The decoder refuses windows of more than 100 MiB, so its memory is bounded.
pub(super) struct Frames<R> {
    source: R,
    decoder: FrameDecoder,
    /// Whether the decoder is in the middle of one.
    in_frame: bool,
}

const FRAME: [u8; 4] = 0xFD2F_B528_u32.to_le_bytes();
/// The last digit of the number is anything.
const TO_BE_SKIPPED: [u8; 3] = [0x2A, 0x4D, 0x18];

impl<R> Frames<R> {
    /// Whether something that begins so is such a stream.
    pub(super) fn begins_with(first: &[u8]) -> bool {
        let skipped = matches!(first, [0x50..=0x5F, rest @ ..] if rest.starts_with(&TO_BE_SKIPPED));
        first.starts_with(&FRAME) || skipped
    }
}

impl<R: BufRead> Frames<R> {
    pub(super) fn new(source: R) -> Self {
        Self { source, decoder: FrameDecoder::new(), in_frame: false }
    }

    /// Goes to the next frame that has content. There may be none.
    fn next_frame(&mut self) -> io::Result<bool> {
        while !self.source.fill_buf()?.is_empty() {
            match self.decoder.reset(&mut self.source) {
                Ok(()) => {
                    self.in_frame = true;
                    return Ok(true);
                }
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    let length = u64::from(length);
                    let skipped =
                        io::copy(&mut self.source.by_ref().take(length), &mut io::sink())?;
                    if skipped < length {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                }
                Err(error) => return Err(io::Error::other(error)),
            }
        }
        Ok(false)
    }
}

impl<R: BufRead> Read for Frames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            if !self.in_frame && !self.next_frame()? {
                return Ok(0);
            }
            while self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
                let decoded = self
                    .decoder
                    .decode_blocks(&mut self.source, BlockDecodingStrategy::UptoBlocks(1));
                decoded.map_err(io::Error::other)?;
            }
            let count = self.decoder.read(buffer)?;
            if count > 0 {
                return Ok(count);
            }
            self.in_frame = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};

    fn read(bytes: &[u8]) -> io::Result<Vec<u8>> {
        let mut content = Vec::new();
        Frames::new(bytes).read_to_end(&mut content)?;
        Ok(content)
    }

    fn compressed(content: &[u8]) -> Vec<u8> {
        compress_to_vec(content, CompressionLevel::Fastest)
    }

    #[test]
    fn frames_follow_one_another_and_some_are_skipped() {
        let skipped = [&[0x5E][..], &TO_BE_SKIPPED, &3_u32.to_le_bytes(), b"abc"].concat();
        let (one, two) = (compressed(&vec![1; 300_000]), compressed(b"two"));
        let stream = [&skipped[..], &one, &skipped, &two, &skipped].concat();
        assert!(Frames::<&[u8]>::begins_with(&stream));
        assert_eq!(read(&stream).unwrap(), [&vec![1; 300_000][..], b"two"].concat());
    }

    #[test]
    fn what_breaks_off_is_an_error_and_no_end() {
        let whole = compressed(b"some content that is here in full");
        for length in 1..whole.len() {
            assert!(read(&whole[..length]).is_err(), "{length} of {}", whole.len());
        }
        assert!(read(&[&whole[..], b"x"].concat()).is_err(), "garbage behind it");
    }
}
