//! Tests with valid and hostile images on a real file system.

mod archives;
mod docs;
mod harness;
mod hostile;
mod import;
mod layers;
#[cfg(feature = "pull")]
mod pull;
mod real_tree;
#[cfg(feature = "pull")]
mod registry;
mod root;
mod store;
mod tar_writer;
#[cfg(feature = "pull")]
mod tls;
