//! `--warm`: the same command, carried out by a helper in the background that keeps sandboxes prepared.
//!
//! The helper is this executable in a hidden mode (`sandbox-run warm serve`). The first client makes the
//! socket and hands it to the helper as its standard input, so that it can connect at once; later ones
//! find the socket. Whoever makes or removes a socket holds its lock. A helper serves clients whose
//! process is set up like its own ([`process_context`]) and who are the same executable; others get another
//! helper, or ask this one to go. It hears a request and says what the library tells ([`message`]); the end
//! of the client's side of the connection means that the execution is not wanted any more.

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
