use std::borrow::Cow;
use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};

use crate::{Digest, InvalidReference, Reference};

/// Why something could not be done with an image.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImageError {
    /// Something is wrong with a certain image; the cause says what.
    #[error("the image '{image}' cannot be taken")]
    Image {
        /// Its name, or the file it is in.
        image: String,
        /// What is wrong.
        source: Box<ImageError>,
    },
    /// A name that is none.
    #[error(transparent)]
    Reference(#[from] InvalidReference),
    /// Nobody pulled or imported it.
    #[error("there is no image '{0}' here: pull or import it first")]
    NoSuchImage(Reference),
    /// It has no name of its own and was given none.
    #[error("it does not say what it is called: give it a name")]
    NoName,
    /// One name cannot be given to several.
    #[error("there are {0} images in it, which cannot all have the name that was given")]
    SeveralImages(usize),
    /// Neither form of archive.
    #[error("it is neither an archive of 'docker save' nor an OCI layout: it has no {0}")]
    NoImageInside(&'static str),
    /// A manifest, an index or a configuration that is none.
    #[error("its {what} cannot be used: {reason}")]
    Document {
        /// Which one.
        what: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Something is not there.
    #[error("{what} is missing")]
    Missing {
        /// What.
        what: String,
    },
    /// Something is not what it was asked for as.
    #[error("{what} is not what it should be: its digest is {found}, not {wanted}")]
    WrongDigest {
        /// What.
        what: String,
        /// What was asked for.
        wanted: Digest,
        /// What came.
        found: Digest,
    },
    /// Something is more than it may be.
    #[error("{what} is over the limit of {most}")]
    TooMuch {
        /// What.
        what: String,
        /// How much it may be.
        most: u64,
    },
    /// It is for other machines.
    #[error("there is nothing in it for {wanted}, only for {found}")]
    Platform {
        /// What this machine is.
        wanted: String,
        /// What there is.
        found: String,
    },
    /// A layer cannot be unpacked.
    #[error("layer {number} ({digest}) cannot be unpacked")]
    Layer {
        /// Which, counted from 1.
        number: usize,
        /// Its digest.
        digest: Digest,
        /// Why.
        source: LayerError,
    },
    /// An archive cannot be read.
    #[error("it cannot be read")]
    Unreadable(#[source] io::Error),
    /// A registry did not give what was asked for.
    #[error("the registry {registry} {reason}")]
    Registry {
        /// Which one.
        registry: String,
        /// What it did.
        reason: String,
    },
    /// Others are adding images, and what they have so far must not be removed.
    #[error("images are being added right now: try again when that is done")]
    Busy,
    /// The environment does not say where the user's files lie.
    #[error(
        "there is no place for images: neither XDG_DATA_HOME nor HOME is an absolute path; \
         set SANDBOX_RUN_IMAGES to a directory"
    )]
    NoPlace,
    /// The place depends on where the command is started.
    #[error("SANDBOX_RUN_IMAGES cannot be used: '{0}' is not an absolute path")]
    RelativePlace(String),
    /// Somebody else could change what sandboxes are made of.
    #[error(
        "the images in {} are not yours alone: set SANDBOX_RUN_IMAGES to a directory of your own that \
         others cannot write to",
        .0.display()
    )]
    NotPrivate(PathBuf),
    /// Something in the store is not as it was written.
    #[error("{} is damaged: {reason}", path.display())]
    Damaged {
        /// What.
        path: PathBuf,
        /// How that shows.
        reason: String,
    },
    /// The file system said no.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// What we wanted to do.
        action: &'static str,
        /// With what.
        path: PathBuf,
        /// What it said.
        source: io::Error,
    },
}

/// Why a layer cannot be unpacked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LayerError {
    /// An entry is not taken.
    #[error("its entry '{path}' {reason}")]
    Entry {
        /// The name, made printable.
        path: String,
        /// What is wrong with it.
        reason: Cow<'static, str>,
    },
    /// An entry could not be written here.
    #[error("its entry '{path}' could not be written")]
    Write {
        /// The name, made printable.
        path: String,
        /// What the file system said.
        source: io::Error,
    },
    /// The layers together are more than an image may be.
    #[error("the image holds more than {most} {what}")]
    TooMuch {
        /// Bytes, or files.
        what: &'static str,
        /// How many there may be.
        most: u64,
    },
    /// It is no archive, or ends too early.
    #[error("it cannot be read as a tar archive")]
    Unreadable(#[source] io::Error),
    /// Its content is not what the configuration says.
    #[error("its content has the digest {found}, and the configuration says {wanted}")]
    WrongContent {
        /// What the configuration says.
        wanted: Digest,
        /// What it is.
        found: Digest,
    },
}

impl ImageError {
    /// Whether it is a failure of ours or of the machine, which no other request can cure.
    pub fn is_ours(&self) -> bool {
        match self {
            Self::Image { source, .. } => source.is_ours(),
            Self::Layer { source, .. } => matches!(source, LayerError::Write { .. }),
            Self::Io { .. } | Self::NotPrivate(_) | Self::Damaged { .. } => true,
            _ => false,
        }
    }

    /// Says which image it is about.
    pub(crate) fn about(self, image: &dyn Display) -> Self {
        match self {
            // About the store, or about a file that has been named.
            Self::NotPrivate(_) | Self::Busy | Self::Image { .. } => self,
            source => Self::Image { image: image.to_string(), source: Box::new(source) },
        }
    }

    /// Turns an error of the file system into one that tells what was tried, and with what.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { action, path: path.to_owned(), source }
    }

    pub(crate) fn document(what: impl Into<String>, reason: impl Display) -> Self {
        Self::Document { what: what.into(), reason: format!("{reason}") }
    }
}
