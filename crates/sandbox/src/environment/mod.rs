//! Packages: fetched and installed once, in sandboxes of their own, and then mounted into executions.
//!
//! A build has two steps (`build`, `step`). The first fetches, in a sandbox that reaches only the package index, with the
//! manager that the recipe names (`manager`, `pip`, `npm`, `cargo`) and with the settings of the host (`host_variables`,
//! `host_files`). The result is a lock: exact versions and hashes (`lock`). The second step installs the fetched files, in
//! a sandbox without a network. Its result is a layer of the store, keyed by the lock, so that builds of one lock share it.
//!
//! The lock is stored too, so that the same request needs no index again. An environment is a lock with a name
//! (`directory`).

mod directory;
mod environments;

mod build;
mod lock;
mod step;

mod manager;

mod cargo;
mod npm;
mod pip;

mod host_files;
mod host_variables;

mod error;

pub use directory::EnvironmentDirectory;
pub use environments::{Environment, Environments};
pub use error::PackageError;
pub use lock::{Lock, LockedPackage};

pub(crate) use build::{BuildContext, Installed};
pub(crate) use environments::{install, locked};
