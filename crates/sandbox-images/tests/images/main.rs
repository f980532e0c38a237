//! Images of all kinds, good ones and hostile ones, against a real file system.

mod archives;
mod arena;
mod hostile;
mod import;
mod layers;
mod page;
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
