//! `sandboxd` as its users have it: a real process, real sockets, real signals.

mod collector;
mod http;
mod server;

mod audit;
mod configuration;
mod executions;
mod keys;
mod killed;
mod stopped;
mod told;
mod traces;
