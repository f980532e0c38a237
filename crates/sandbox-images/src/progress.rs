use crate::Digest;

/// How far the making of an image is. Told now and then, for people who wait.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Progress {
    /// A layer or a configuration is being fetched.
    Fetching {
        /// Which.
        digest: Digest,
        /// How many bytes are here.
        bytes: u64,
        /// How many there are.
        of: u64,
    },
    /// Fetching broke off, and is tried again.
    Retrying {
        /// What.
        digest: Digest,
        /// Why it broke off.
        reason: String,
    },
    /// An archive is being read.
    Reading {
        /// How many bytes of it were read.
        bytes: u64,
    },
    /// A layer is being unpacked.
    Unpacking {
        /// Which, counted from 1.
        layer: usize,
        /// How many there are.
        of: usize,
    },
}
