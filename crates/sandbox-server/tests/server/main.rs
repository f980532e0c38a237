//! `sandboxd` as its users have it: a real process, real sockets, real signals.

mod http;
mod server;

mod configuration;
mod executions;
mod guide;
mod keys;
mod killed;
mod pages;
mod schema;
mod stopped;
