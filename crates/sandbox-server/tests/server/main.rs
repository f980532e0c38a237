//! `sandboxd` as its users have it: a real process, real sockets, real signals.

mod http;
mod receiver;
mod server;
mod watcher;

mod callbacks;
mod configuration;
mod executions;
mod keys;
mod killed;
mod resumed;
mod stopped;
mod watched;
