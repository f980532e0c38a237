//! `sandboxd` as its users have it: a real process, real sockets, real signals.

mod http;
mod receiver;
mod server;

mod callbacks;
mod configuration;
mod executions;
mod keys;
mod killed;
mod stopped;
