//! Runs code that nobody trusts, safely, and reports exactly what happened.
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
//! A [`Sandbox`] is made once and shared: executions through `&self` run in parallel. A program that
//! fails, runs too long or wants too much memory is a [`Report`], never an error. Errors are for
//! requests that cannot be taken ([`ExecuteError`]) and hosts that cannot build walls
//! ([`StartError`]).

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

/// The whole vocabulary of requests, limits, reports and backends.
pub use sandbox_backends::native::{Copies, sandboxes_have_own_ids};
pub use sandbox_backends::oci::OciRuntime;
pub use sandbox_backends::{
    close_others_on_exec, release_free_memory, seccomp_for_docker, seccomp_for_oci,
};
pub use sandbox_core::*;
