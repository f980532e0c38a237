//! What programs in containers see beside their own files.

use std::path::{Path, PathBuf};

use sandbox_core::{BackendError, Tree};
use sandbox_linux::skeleton::{Shown, Skeleton};

use crate::look_at_image;

/// The root of every container of a backend.
pub(crate) struct Root {
    pub(crate) skeleton: Skeleton,
    /// Paths of the host that are shown where they lie.
    pub(crate) shown: Vec<PathBuf>,
    /// What is shown elsewhere: an image's own directories, which lie where nobody else may look.
    pub(crate) trees: Vec<Tree>,
}

impl Root {
    /// The host's own programs, or those of an image that was unpacked into a directory.
    pub(crate) fn of(image: Option<&Path>) -> Result<Self, BackendError> {
        let Some(image) = image else {
            let skeleton = Skeleton::of_host();
            let shown = skeleton.shown().iter().map(|shown| shown.host.clone()).collect();
            return Ok(Self { skeleton, shown, trees: Vec::new() });
        };
        let skeleton = look_at_image(image)?;
        let tree = |Shown { host, inside, .. }: &Shown| Tree {
            host: host.clone(),
            inside: inside.clone(),
            copy_on_write: false,
        };
        let trees = skeleton.shown().iter().map(tree).collect();
        Ok(Self { skeleton, shown: Vec::new(), trees })
    }
}
