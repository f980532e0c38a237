//! Runs untrusted code in a sandbox and reports exactly what happened.
//!
//! ```
//! use sandbox::{Limits, Request, Sandbox};
//! use std::time::Duration;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let sandbox = Sandbox::new()?;
//! let request = Request::builder("python")
//!     .code("print(6 * 7)")
//!     .limits(Limits::run().with_wall_time(Duration::from_secs(2))?)
//!     .build()?;
//! let report = sandbox.execute(request)?;
//! assert!(report.success, "{:?}", report.error);
//! assert_eq!(report.stdout, "42\n");
//! # Ok(())
//! # }
//! ```
//!
//! Create one [`Sandbox`] and share it: executions through `&self` run in parallel. A program that fails,
//! times out or runs out of memory gives a [`Report`], never an error. Errors mean that the request was
//! not accepted ([`ExecuteError`]) or that the host cannot run sandboxes ([`StartError`]).

mod backend;
mod isolation;
mod sandbox;

mod execution;
mod hooks;
mod layers;

mod environment;
mod image;
mod runtime;
pub mod template;
mod workspace;

mod compile_cache;
mod engine;
mod events;
mod plan;
mod report;
mod snippet;
mod volumes;

pub mod attack;
pub mod store;

mod error;

#[cfg(test)]
mod scripted;

pub use environment::{
    Environment, EnvironmentDirectory, Environments, Lock, LockedPackage, PackageError,
};
pub use error::{ExecuteError, StartError};
pub use execution::Execution;
pub use hooks::{Hooks, Refusal};
pub use isolation::{IsolationStatus, preferred};
pub use runtime::{
    Hello, Installer, RecipeError, ResolveError, Runtime, RuntimeStatus, Runtimes,
    TOOLCHAINS_IN_IMAGES, toolchains_directory,
};
pub use sandbox::{Requirements, Sandbox, SandboxBuilder};
pub use workspace::{TarError, Workspace, WorkspaceError, Workspaces};

/// Types of requests, limits, reports and backends.
pub use sandbox_backends::native::{ForkPolicy, sandboxes_have_own_ids};
pub use sandbox_backends::oci::OciRuntime;
pub use sandbox_backends::{
    close_others_on_exec, release_free_memory, seccomp_for_docker, seccomp_for_oci,
};
pub use sandbox_core::*;
