use std::io::{self, BufRead, Read};

use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

/// Decompresses all frames of a zstd stream.
///
/// Image builders write several frames, and skippable frames with tables of contents for lazy pulling. The decoder
/// rejects windows of more than 100 MiB, which bounds its memory.
pub(super) struct Frames<R> {
    source: R,
    decoder: FrameDecoder,
    /// Whether the decoder is inside a frame.
    in_frame: bool,
}

const FRAME: [u8; 4] = 0xFD2F_B528_u32.to_le_bytes();
/// The upper bytes of the magic number of skippable frames; the lowest is 0x50 to 0x5F.
const SKIPPABLE: [u8; 3] = [0x2A, 0x4D, 0x18];

impl<R> Frames<R> {
    /// Whether a stream with these first bytes is zstd.
    pub(super) fn begins_with(first: &[u8]) -> bool {
        let is_skippable =
            matches!(first, [0x50..=0x5F, rest @ ..] if rest.starts_with(&SKIPPABLE));
        first.starts_with(&FRAME) || is_skippable
    }
}

impl<R: BufRead> Frames<R> {
    pub(super) fn new(source: R) -> Self {
        Self { source, decoder: FrameDecoder::new(), in_frame: false }
    }

    /// Advances to the next frame with content. Returns false at the end of the stream.
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
    fn frames_are_concatenated_and_skippable_ones_skipped() {
        let skipped = [&[0x5E][..], &SKIPPABLE, &3_u32.to_le_bytes(), b"abc"].concat();
        let (one, two) = (compressed(&vec![1; 300_000]), compressed(b"two"));
        let stream = [&skipped[..], &one, &skipped, &two, &skipped].concat();
        assert!(Frames::<&[u8]>::begins_with(&stream));
        assert_eq!(read(&stream).unwrap(), [&vec![1; 300_000][..], b"two"].concat());
    }

    #[test]
    fn a_truncated_stream_is_an_error() {
        let whole = compressed(b"some complete content");
        for length in 1..whole.len() {
            assert!(read(&whole[..length]).is_err(), "{length} of {}", whole.len());
        }
        assert!(read(&[&whole[..], b"x"].concat()).is_err(), "trailing garbage");
    }
}
