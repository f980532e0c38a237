//! `sandboxd` as its users have it: a real process, real sockets, real signals.

mod collector;
mod http;
mod isolations;
mod receiver;
mod server;
mod watcher;
mod wire;

mod audit;
mod callbacks;
mod configuration;
mod crowd;
mod data_lock;
mod disk_full;
mod executions;
mod floods;
mod given_back;
mod guide;
mod half_open;
mod keys;
mod killed;
mod malformed;
mod pages;
mod refused;
mod resumed;
mod schema;
mod slow_reader;
mod stopped;
mod tls;
mod told;
mod traces;
mod versions;
mod watched;
