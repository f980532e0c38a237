//! `sandboxd` as its users have it: a real process, real sockets, real signals.

mod collector;
mod http;
mod receiver;
mod server;
mod watcher;

mod audit;
mod callbacks;
mod configuration;
mod executions;
mod keys;
mod killed;
mod resumed;
mod stopped;
mod told;
mod traces;
mod watched;
