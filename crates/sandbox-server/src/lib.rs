//! `sandboxd`: an HTTP server that runs untrusted code in sandboxes.
//!
//! A request travels from `api` (what clients see) through `work`, which checks it, to the scheduler and into the
//! library, and its report back; `callbacks` sends it on. `state` is what all handlers share, `serve` starts and stops
//! the parts.

mod commands;

pub(crate) mod api;
pub(crate) mod callbacks;
pub(crate) mod config;
pub(crate) mod environments;
pub(crate) mod keys;
pub(crate) mod logging;
pub(crate) mod metrics;
pub(crate) mod observer;
pub(crate) mod policy;
pub(crate) mod problems;
pub(crate) mod serve;
pub(crate) mod state;
pub(crate) mod telemetry;
pub(crate) mod work;

pub use commands::run;
