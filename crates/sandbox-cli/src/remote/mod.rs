//! `--server`: run commands on a sandboxd server.

mod body;
mod clock;
mod connection;
mod events;
mod failure;
mod http;
mod run;
mod runtimes;
mod sse;
#[cfg(feature = "https")]
mod tls;
mod translate;

#[cfg(test)]
mod test_server;

pub(crate) use events::{StreamMessage, read as read_event};
pub(crate) use run::RemoteRun;
pub(crate) use runtimes::runtimes;
