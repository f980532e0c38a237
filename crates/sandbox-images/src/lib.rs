//! OCI images: pulls them from registries, imports them from archives, unpacks and stores them, without another
//! container tool.
//!
//! ```text
//! Reference ──► pull ───┐
//!                       ├──► staging ──► unpack ──► store ──► Image { digest, root, config }
//! file or directory ──► import
//! ```
//!
//! Images and everything that a registry sends are untrusted. Downloads are verified against their digests. Layers
//! are unpacked entry by entry below a descriptor of the image's root, so that no name and no link of an archive
//! leads out of it. [`Limits`] bounds all sizes. An image is added completely or not at all.
//!
//! ```no_run
//! # fn main() -> Result<(), sandbox_images::ImageError> {
//! let store = sandbox_images::Store::open("/var/lib/sandbox-run/images".as_ref())?;
//! store.import("python.tar".as_ref(), None, &mut |_| {})?;
//! let image = store.resolve(&"python:3.12".parse()?)?;
//! assert!(image.root.is_dir());
//! # Ok(())
//! # }
//! ```

mod digest;
mod reference;

mod documents;

mod store;

mod archive;
mod import;
#[cfg(feature = "pull")]
mod pull;
mod unpack;

mod error;
mod limits;
mod progress;

pub use digest::{Digest, InvalidDigest};
pub use documents::ImageConfig;
pub use error::{ImageError, LayerError};
pub use limits::Limits;
pub use progress::Progress;
#[cfg(feature = "pull")]
pub use pull::{PlainHttp, PullOptions};
pub use reference::{InvalidReference, Reference, Version};
pub use store::{Image, ImageInfo, Pruned, Store};
