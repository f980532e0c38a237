//! The client against a server that sends scripted bytes.

mod follow;
mod requests;
mod server;
