//! Packages: fetched and installed once, in sandboxes of their own, and then shown to executions.
//!
//! Two steps. The first one fetches, in a sandbox that reaches the package index and nothing else
//! (`build`, `watch`), with the manager that the recipe names (`manager`, `pip`, `npm`, `cargo`), set up as the host is
//! (`host`, `host_files`). What it fetched is written down with exact versions and hashes (`lock`). The
//! second one installs from that, in a sandbox without any network; what it leaves is a layer of the
//! store, found by the lock, so that two builds of one lock share it.
//!
//! The lock is kept too: asked for the same packages again, no index is needed. A person can give a
//! lock a name (`named`), which is an environment.

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
