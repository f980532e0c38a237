//! The JSON documents of an image: an index refers to manifests, a manifest to a configuration and layers.

mod config;
mod manifest;
mod platform;

pub(crate) use config::ConfigFile;
pub use config::ImageConfig;
pub(crate) use manifest::{Descriptor, Document, Manifest};
pub(crate) use platform::{Platform, select_platform};
