//! `sandboxd` as its users have it: a real process, real sockets, real signals.

mod http;
mod server;
mod wire;

mod configuration;
mod crowd;
mod executions;
mod floods;
mod half_open;
mod keys;
mod killed;
mod malformed;
mod slow_reader;
mod stopped;
mod tls;
mod versions;
