//! Unpacks the layers of an image into one directory, in their order, each over the result of those before it.
//!
//! Everything is written through a descriptor of the new root. The kernel looks up the parent directory of an entry
//! with that root as `/` (`RESOLVE_IN_ROOT`), because real images have paths through links of earlier layers, such as
//! `lib/x` where `lib` is a link to `usr/lib`. The last component is created or removed relative to that directory
//! and never followed.

mod budget;
mod layer;
mod tree;

use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{Mode, OFlags, open};

use crate::{Digest, ImageError, LayerError, Limits, Progress};

use budget::Budget;
use layer::Unpacker;
use tree::Tree;

/// A layer to be unpacked.
#[derive(Debug)]
pub(crate) struct Layer {
    pub(crate) digest: Digest,
    pub(crate) file: File,
    /// The digest of the uncompressed layer.
    pub(crate) diff_id: Digest,
}

/// The size of unpacked layers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct UnpackedSize {
    pub(crate) bytes: u64,
    pub(crate) entries: u64,
}

/// Unpacks all layers into an empty directory.
pub(crate) fn unpack(
    layers: Vec<Layer>,
    into: &Path,
    limits: &Limits,
    progress: &mut dyn FnMut(Progress),
) -> Result<UnpackedSize, ImageError> {
    let mut tree = Tree::new(open_root(into)?, limits.depth)
        .map_err(|error| ImageError::io("inspect", into)(error.into()))?;
    let mut budget = Budget::new(limits);
    let of = layers.len();
    for (number, layer) in layers.into_iter().enumerate() {
        let number = number + 1;
        progress(Progress::Unpacking { layer: number, of });
        let digest = layer.digest.clone();
        let unpacked = Unpacker { tree: &mut tree, budget: &mut budget, limits }.unpack(layer);
        unpacked.map_err(|source: LayerError| ImageError::Layer { number, digest, source })?;
    }
    Ok(budget.used())
}

fn open_root(path: &Path) -> Result<OwnedFd, ImageError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    open(path, flags, Mode::empty()).map_err(|error| ImageError::io("open", path)(error.into()))
}
