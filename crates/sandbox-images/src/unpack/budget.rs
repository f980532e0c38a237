use std::io::{self, Read};

use sha2::{Digest as _, Sha256};

use super::Unpacked;
use crate::{Digest, LayerError, Limits};

/// How much of the image there has been, in all layers so far.
#[derive(Debug)]
pub(super) struct Budget {
    used: Unpacked,
    most: Unpacked,
}

impl Budget {
    pub(super) fn new(limits: &Limits) -> Self {
        let most = Unpacked { bytes: limits.unpacked_bytes, entries: limits.entries };
        Self { used: Unpacked::default(), most }
    }

    pub(super) fn used(&self) -> Unpacked {
        self.used
    }

    /// One more entry.
    pub(super) fn entry(&mut self) -> Result<(), LayerError> {
        self.used.entries += 1;
        if self.used.entries > self.most.entries {
            return Err(LayerError::TooMuch { what: "files", most: self.most.entries });
        }
        Ok(())
    }

    /// Whether there have been more bytes than there may be, and reading stopped there.
    pub(super) fn is_overdrawn(&self) -> Option<LayerError> {
        let over = self.used.bytes > self.most.bytes;
        over.then_some(LayerError::TooMuch { what: "bytes", most: self.most.bytes })
    }
}

/// The decompressed content of a layer on its way: counted against the budget, and hashed.
pub(super) struct Metered<R> {
    source: R,
    bytes: u64,
    left: u64,
    hash: Sha256,
}

impl<R: Read> Metered<R> {
    pub(super) fn new(source: R, budget: &Budget) -> Self {
        let left = budget.most.bytes - budget.used.bytes.min(budget.most.bytes);
        Self { source, bytes: 0, left, hash: Sha256::new() }
    }

    /// Books what was read.
    pub(super) fn settle(&self, budget: &mut Budget) {
        budget.used.bytes += self.bytes;
    }

    pub(super) fn digest(self) -> Digest {
        Digest::from_hash(self.hash)
    }
}

impl<R: Read> Read for Metered<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.bytes > self.left {
            return Err(io::Error::other("it is larger than it may be"));
        }
        let count = self.source.read(buffer)?;
        self.bytes += count as u64;
        self.hash.update(&buffer[..count]);
        Ok(count)
    }
}
