use std::io::{self, Read};

use sha2::{Digest as _, Sha256};

use super::UnpackedSize;
use crate::{Digest, LayerError, Limits};

/// The size of all layers unpacked so far, and its limits.
#[derive(Debug)]
pub(super) struct Budget {
    used: UnpackedSize,
    limit: UnpackedSize,
}

impl Budget {
    pub(super) fn new(limits: &Limits) -> Self {
        let limit = UnpackedSize { bytes: limits.unpacked_bytes, entries: limits.entries };
        Self { used: UnpackedSize::default(), limit }
    }

    pub(super) fn used(&self) -> UnpackedSize {
        self.used
    }

    /// Counts an entry.
    pub(super) fn add_entry(&mut self) -> Result<(), LayerError> {
        self.used.entries += 1;
        if self.used.entries > self.limit.entries {
            return Err(LayerError::LimitExceeded { what: "files", limit: self.limit.entries });
        }
        Ok(())
    }

    /// Checks the limit on bytes, at which reading stops.
    pub(super) fn check_bytes(&self) -> Result<(), LayerError> {
        if self.used.bytes > self.limit.bytes {
            return Err(LayerError::LimitExceeded { what: "bytes", limit: self.limit.bytes });
        }
        Ok(())
    }
}

/// Counts and hashes the uncompressed bytes of a layer as they are read.
pub(super) struct Metered<R> {
    source: R,
    bytes: u64,
    left: u64,
    hash: Sha256,
}

impl<R: Read> Metered<R> {
    pub(super) fn new(source: R, budget: &Budget) -> Self {
        let left = budget.limit.bytes.saturating_sub(budget.used.bytes);
        Self { source, bytes: 0, left, hash: Sha256::new() }
    }

    /// Charges the bytes read to the budget.
    pub(super) fn charge(&self, budget: &mut Budget) {
        budget.used.bytes += self.bytes;
    }

    pub(super) fn digest(self) -> Digest {
        Digest::from_hash(self.hash)
    }
}

impl<R: Read> Read for Metered<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.bytes > self.left {
            return Err(io::Error::other("size limit exceeded"));
        }
        let count = self.source.read(buffer)?;
        self.bytes += count as u64;
        self.hash.update(&buffer[..count]);
        Ok(count)
    }
}
