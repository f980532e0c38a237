//! What every backend has to do, as a table: a request, the status its report must have, and a check
//! of what else the report must say.
//!
//! The backends are listed in `sandbox_tests::backend`. A row is a test of its own and runs under
//! each of them; what cannot be said in one row (events, cancellation, many at once) is a test that
//! is handed a sandbox of each.

#[macro_use]
mod table;

mod control;
mod differences;
mod endings;
mod events;
mod files;
mod floods;
mod images;
mod input;
mod kernel_memory;
mod loaded;
mod memory;
mod metrics;
mod network;
mod ordinary_user;
mod output;
mod pool;
mod prepared;
mod processes;
mod resources;
mod runtime_filter;
mod terminals;
mod time;
mod together;
mod toolchains;
mod variants;
mod volume_paths;
mod volumes;
mod warm;
mod workspaces;
mod world;
