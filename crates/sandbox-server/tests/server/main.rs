//! Tests of `sandboxd` as a process, with real sockets and signals.

mod collector;
mod event_stream;
mod http;
mod raw_connection;
mod receiver;
mod server_process;

mod audit;
mod callbacks;
mod concurrency;
mod configuration;
mod crash_recovery;
mod data_lock;
mod disk_full;
mod executions;
mod guide;
mod http_versions;
mod isolations;
mod keys;
mod log_and_metrics;
mod malformed;
mod memory_release;
mod oversized;
mod pages;
mod schema;
mod shutdown;
mod slow_reader;
mod socket;
mod stdin;
mod stream_resume;
mod timeouts;
mod tls;
mod traces;
mod unread_bodies;
