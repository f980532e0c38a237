//! `--warm`: run in a background helper that keeps sandboxes ready.
//!
//! The helper is this executable in a hidden mode (`sandbox-run warm serve`). The first client creates the socket and
//! passes it to the helper as standard input, so that the client can connect at once; later clients find the socket. A
//! process that creates or removes a socket holds its lock. A helper serves clients with the same executable and the same
//! [`process_context`]; other clients start another helper, or ask this one to exit. It receives a request and sends the
//! events of the library ([`message`]). When the client closes its side of the connection, the execution is cancelled.

mod activity;
mod client;
mod commands;
mod connect;
mod directory;
mod executable;
mod frame;
mod helper;
mod input;
mod message;
mod peer;
mod process_context;
mod session;
mod settings;
mod shared_sandbox;
mod wire_request;

pub(crate) use client::WarmRun;
pub(crate) use commands::run;
pub(crate) use helper::{is_helper, serve};
