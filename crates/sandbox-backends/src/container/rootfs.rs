//! The root file system of containers.

use std::path::{Path, PathBuf};

use sandbox_core::{BackendError, Tree};
use sandbox_linux::skeleton::{Shown, Skeleton};

use crate::image::image_skeleton;

/// The root of every container of a backend.
pub(crate) struct Rootfs {
    pub(crate) skeleton: Skeleton,
    /// Host paths that are mounted at the same path.
    pub(crate) shown: Vec<PathBuf>,
    /// What is mounted at other paths: an image's directories, which lie in a private directory.
    pub(crate) trees: Vec<Tree>,
}

impl Rootfs {
    /// The host's own programs, or those of an unpacked image.
    pub(crate) fn of(image: Option<&Path>) -> Result<Self, BackendError> {
        let Some(image) = image else {
            let skeleton = Skeleton::of_host();
            let shown = skeleton.shown().iter().map(|shown| shown.host.clone()).collect();
            return Ok(Self { skeleton, shown, trees: Vec::new() });
        };
        let skeleton = image_skeleton(image)?;
        let tree = |Shown { host, inside, .. }: &Shown| Tree {
            host: host.clone(),
            inside: inside.clone(),
            copy_on_write: false,
        };
        let trees = skeleton.shown().iter().map(tree).collect();
        Ok(Self { skeleton, shown: Vec::new(), trees })
    }
}
