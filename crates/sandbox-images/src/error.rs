use std::borrow::Cow;
use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};

use crate::{Digest, InvalidReference, Reference};

/// Why an operation on images failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImageError {
    /// An operation on one image failed; the source says why.
    #[error("cannot use image '{image}'")]
    Image {
        /// Its name, or the path of its file.
        image: String,
        /// The cause.
        source: Box<ImageError>,
    },
    /// The image name is invalid.
    #[error(transparent)]
    Reference(#[from] InvalidReference),
    /// No image of this name was pulled or imported.
    #[error("image '{0}' not found: pull or import it first")]
    NoSuchImage(Reference),
    /// The archive does not name the image, and the caller gave no name.
    #[error("the archive does not name the image: specify a name")]
    NoName,
    /// The caller gave one name for several images.
    #[error("the archive contains {0} images, which cannot share the specified name")]
    SeveralImages(usize),
    /// The file is in none of the supported formats.
    #[error("neither a 'docker save' archive nor an OCI layout: it has no {0}")]
    NoImageInside(&'static str),
    /// A manifest, an index or a configuration is invalid.
    #[error("invalid {what}: {reason}")]
    Document {
        /// The document.
        what: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A part of the image is missing.
    #[error("{what} is missing")]
    Missing {
        /// The missing part.
        what: String,
    },
    /// Content does not have the expected digest.
    #[error("digest mismatch of {what}: expected {expected}, found {found}")]
    DigestMismatch {
        /// The content.
        what: String,
        /// The expected digest.
        expected: Digest,
        /// The digest of the content.
        found: Digest,
    },
    /// A limit is exceeded.
    #[error("{what} exceeds the limit of {limit}")]
    LimitExceeded {
        /// The limited quantity.
        what: String,
        /// The limit.
        limit: u64,
    },
    /// The image is for other platforms.
    #[error("no image for {host}, only for {found}")]
    Platform {
        /// The platform of this host.
        host: String,
        /// The platforms of the image.
        found: String,
    },
    /// A layer cannot be unpacked.
    #[error("cannot unpack layer {number} ({digest})")]
    Layer {
        /// The number of the layer, from 1.
        number: usize,
        /// Its digest.
        digest: Digest,
        /// The cause.
        source: LayerError,
    },
    /// An archive cannot be read.
    #[error("cannot read the archive")]
    Unreadable(#[source] io::Error),
    /// A registry failed to deliver the image.
    #[error("registry {registry} {reason}")]
    Registry {
        /// The host of the registry.
        registry: String,
        /// What it did.
        reason: String,
    },
    /// Another process is adding images, whose blobs must not be removed.
    #[error("another process is adding images: try again when it has finished")]
    Busy,
    /// The environment does not determine a directory for images.
    #[error(
        "no directory for images: neither XDG_DATA_HOME nor HOME is an absolute path; \
         set SANDBOX_RUN_IMAGES to a directory"
    )]
    NoDirectory,
    /// The directory would depend on the current directory.
    #[error("invalid SANDBOX_RUN_IMAGES: '{0}' is not an absolute path")]
    RelativeDirectory(String),
    /// Another user could modify the images.
    #[error(
        "{} is not a directory that only you can write to: set SANDBOX_RUN_IMAGES to another one",
        .0.display()
    )]
    NotPrivate(PathBuf),
    /// A file in the store is not as it was written.
    #[error("{} is corrupt: {reason}", path.display())]
    Corrupt {
        /// The path of the file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A file operation failed.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// The operation.
        action: &'static str,
        /// The path of the file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
}

/// Why a layer cannot be unpacked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LayerError {
    /// An entry is rejected.
    #[error("entry '{path}' {reason}")]
    Entry {
        /// The path of the entry, made printable.
        path: String,
        /// What is wrong with it.
        reason: Cow<'static, str>,
    },
    /// An entry cannot be written to disk.
    #[error("cannot write entry '{path}'")]
    Write {
        /// The path of the entry, made printable.
        path: String,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The layers together exceed a limit.
    #[error("the image has more than {limit} {what}")]
    LimitExceeded {
        /// Bytes or files.
        what: &'static str,
        /// The limit.
        limit: u64,
    },
    /// The layer is not a tar archive, or is truncated.
    #[error("cannot read the tar archive")]
    Unreadable(#[source] io::Error),
    /// The uncompressed layer does not have the digest in the configuration.
    #[error("digest mismatch of the uncompressed layer: expected {expected}, found {found}")]
    DigestMismatch {
        /// The digest in the configuration (`diff_ids`).
        expected: Digest,
        /// The digest of the uncompressed layer.
        found: Digest,
    },
}

impl ImageError {
    /// Whether the cause is this program or the host, and not the image or the request.
    pub fn is_internal(&self) -> bool {
        match self {
            Self::Image { source, .. } => source.is_internal(),
            Self::Layer { source, .. } => matches!(source, LayerError::Write { .. }),
            Self::Io { .. } | Self::NotPrivate(_) | Self::Corrupt { .. } => true,
            _ => false,
        }
    }

    /// Adds the name of the image.
    pub(crate) fn about(self, image: &dyn Display) -> Self {
        match self {
            // These concern the store, or name the image already.
            Self::NotPrivate(_) | Self::Busy | Self::Image { .. } => self,
            source => Self::Image { image: image.to_string(), source: Box::new(source) },
        }
    }

    /// Adds the operation and the path to an I/O error.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { action, path: path.to_owned(), source }
    }

    pub(crate) fn document(what: impl Into<String>, reason: impl Display) -> Self {
        Self::Document { what: what.into(), reason: reason.to_string() }
    }
}
