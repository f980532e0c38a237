//! OCI images: pulled from registries, imported from archives, unpacked and kept, all by ourselves.
//!
//! ```text
//! Reference ──► pull ───┐
//!                       ├──► staging ──► unpack ──► store ──► Image { digest, root, config }
//! file or directory ──► import
//! ```
//!
//! An image is made by strangers, and so is every byte on its way here. What is fetched is held against the
//! digest it was asked by; what is unpacked is written name by name below a descriptor of its root, so that no
//! name and no link of an archive leads anywhere else ([`Limits`] bounds the rest). An image is taken whole
//! or not at all.
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
pub use store::{Image, Kept, Pruned, Store};
