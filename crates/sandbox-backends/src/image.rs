//! What the root of a sandbox shows: an unpacked image, or the host.

use std::path::Path;

use sandbox_core::BackendError;
use sandbox_linux::skeleton::{Shown, Skeleton};

/// What an unpacked image contributes to a root. The error is a message for people.
pub(crate) fn image_skeleton(directory: &Path) -> Result<Skeleton, BackendError> {
    let refused = |reason: &str| {
        BackendError::Refused(format!("the image cannot be the root of a sandbox: {reason}"))
    };
    if directory.to_str().is_none() {
        return Err(refused("the path to it is not plain text"));
    }
    Skeleton::of_image(directory).map_err(|error| refused(&error.to_string()))
}

/// What the root of a sandbox shows of the host, or of an unpacked image.
pub(crate) fn shown_by_root(image: Option<&Path>) -> Result<Vec<Shown>, BackendError> {
    match image {
        Some(image) => Ok(image_skeleton(image)?.shown().to_vec()),
        None => Ok(Skeleton::shown_of_host()),
    }
}
