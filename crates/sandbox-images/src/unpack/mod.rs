//! Layers become a directory, in their order, each over what the ones before it left.
//!
//! Everything is written through a descriptor of the new root. The directory that an entry is in is looked up by
//! the kernel with that root as the top of all (`RESOLVE_IN_ROOT`), since real images have names that lead
//! through links of earlier layers, such as `lib/x` where `lib` is a link to `usr/lib`. The last name is made
//! or removed by itself, beneath that directory, and never followed.

mod budget;
mod layer;
mod tree;

use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{Mode, OFlags, open};

use crate::{Digest, ImageError, LayerError, Limits, Progress};

use budget::Budget;
use layer::Layer;
use tree::Tree;

/// A layer and what is to come out of it.
#[derive(Debug)]
pub(crate) struct Packed {
    pub(crate) digest: Digest,
    pub(crate) file: File,
    /// The digest of what is in it, decompressed.
    pub(crate) content: Digest,
}

/// How much came out.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Unpacked {
    pub(crate) bytes: u64,
    pub(crate) entries: u64,
}

/// Unpacks all layers into an empty directory.
pub(crate) fn unpack(
    layers: Vec<Packed>,
    into: &Path,
    limits: &Limits,
    progress: &mut dyn FnMut(Progress),
) -> Result<Unpacked, ImageError> {
    let mut tree = Tree::new(open_root(into)?, limits.depth)
        .map_err(|error| ImageError::io("look at", into)(error.into()))?;
    let mut budget = Budget::new(limits);
    let of = layers.len();
    for (number, packed) in layers.into_iter().enumerate() {
        let number = number + 1;
        progress(Progress::Unpacking { layer: number, of });
        let digest = packed.digest.clone();
        let done = Layer { tree: &mut tree, budget: &mut budget, limits }.unpack(packed);
        done.map_err(|source: LayerError| ImageError::Layer { number, digest, source })?;
    }
    Ok(budget.used())
}

fn open_root(path: &Path) -> Result<OwnedFd, ImageError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    open(path, flags, Mode::empty()).map_err(|error| ImageError::io("open", path)(error.into()))
}
