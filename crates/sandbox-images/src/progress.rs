use crate::Digest;

/// Progress of a pull or an import.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Progress {
    /// A layer or a configuration is being downloaded.
    Fetching {
        /// Its digest.
        digest: Digest,
        /// The bytes received so far.
        bytes: u64,
        /// The total size in bytes.
        of: u64,
    },
    /// A download was interrupted and is retried.
    Retrying {
        /// The digest of the blob.
        digest: Digest,
        /// The reason of the interruption.
        reason: String,
    },
    /// An archive is being read.
    Reading {
        /// The bytes read so far.
        bytes: u64,
    },
    /// A layer is being unpacked.
    Unpacking {
        /// The number of the layer, from 1.
        layer: usize,
        /// The number of layers.
        of: usize,
    },
}
