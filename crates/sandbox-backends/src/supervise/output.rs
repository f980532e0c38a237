//! The program's output, as far as it is kept.

use sandbox_core::StreamKind;

/// The output that is kept.
#[derive(Debug, Default)]
pub(crate) struct CapturedOutput {
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
    pub(crate) both: Vec<u8>,
    pub(crate) stdout_truncated: bool,
    pub(crate) stderr_truncated: bool,
    limit: usize,
}

impl CapturedOutput {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, ..Self::default() }
    }

    /// Keeps what fits and returns how many bytes that was.
    pub(crate) fn take(&mut self, kind: StreamKind, bytes: &[u8]) -> usize {
        let room = self.limit - self.both.len();
        let taken = room.min(bytes.len());
        let (stream, truncated) = match kind {
            StreamKind::Stdout => (&mut self.stdout, &mut self.stdout_truncated),
            StreamKind::Stderr => (&mut self.stderr, &mut self.stderr_truncated),
        };
        stream.extend_from_slice(&bytes[..taken]);
        *truncated |= taken < bytes.len();
        self.both.extend_from_slice(&bytes[..taken]);
        taken
    }

    /// Whether more was written than may be kept.
    pub(crate) fn is_over(&self) -> bool {
        self.stdout_truncated || self.stderr_truncated
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bytes_up_to_the_limit_are_kept() {
        let mut kept = CapturedOutput::new(5);
        assert_eq!(kept.take(StreamKind::Stdout, b"abc"), 3);
        assert!(!kept.is_over());
        assert_eq!(kept.take(StreamKind::Stderr, b"def"), 2);
        assert_eq!(kept.take(StreamKind::Stdout, b"g"), 0);
        assert_eq!(
            (&kept.stdout[..], &kept.stderr[..], &kept.both[..]),
            (&b"abc"[..], &b"de"[..], &b"abcde"[..])
        );
        assert!(kept.stdout_truncated && kept.stderr_truncated && kept.is_over());
    }
}
