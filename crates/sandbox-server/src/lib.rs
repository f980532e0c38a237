//! `sandboxd`: an HTTP server that runs untrusted code in sandboxes.
//!
//! `api` receives a request, `work` admits, queues and runs it with the sandbox library, and `callbacks` delivers the
//! report to a URL. `serve` starts and stops the server; `state` has what all handlers share.

mod commands;

pub(crate) mod api;
pub(crate) mod callbacks;
pub(crate) mod config;
pub(crate) mod environments;
pub(crate) mod keys;
pub(crate) mod logging;
pub(crate) mod metrics;
pub(crate) mod sandboxes;
pub(crate) mod serve;
pub(crate) mod state;
pub(crate) mod telemetry;
pub(crate) mod work;

pub use commands::run;
