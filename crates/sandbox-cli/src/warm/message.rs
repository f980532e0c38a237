//! The messages between a client and its helper.

use std::io;
use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::executable::Executable;
use super::frame::{self, Kind};
use super::wire_request::WireRequest;
use crate::errors::Failure;

/// Longer than a helper takes to start and answer on the busiest host.
pub(super) const REPLY_TIMEOUT: Duration = Duration::from_mins(1);

/// The first message of a client.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum HelperRequest {
    /// Execute this. The files follow.
    Execute(Box<Order>),
    /// Report the status.
    Status,
    /// Accept no further executions, and exit when the running ones have finished.
    Go,
}

/// A request, and what must match for the helper to give the same result as the client would.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Order {
    pub(super) executable: Executable,
    pub(super) context: String,
    /// The toolchain as the client found it on this host just now.
    pub(super) runtime: String,
    /// How long the helper stays idle before it exits.
    pub(super) idle: Duration,
    /// Compile without the compile cache.
    pub(super) no_cache: bool,
    pub(super) asked: WireRequest,
}

/// Replies of a helper. Events are sent as frames of their own.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Reply {
    /// The request was accepted. Nothing was done for it before.
    Taken,
    /// This helper has another executable or process context.
    Differs,
    /// Send at most this many bytes of standard input.
    WantInput(usize),
    /// There is no report, because the request is wrong.
    Wrong(String),
    /// There is no report, because of an internal error.
    Failed(String),
    /// There is no helper, because no sandbox can be started here.
    NoSandbox(String),
    /// The status of the helper.
    Status(Status),
    /// The helper accepts no further executions; this many are still running.
    Going(usize),
}

/// The status of a helper.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Status {
    pub(super) process: u32,
    pub(super) version: String,
    pub(super) since: DateTime<Utc>,
    /// Number of accepted executions, running ones included.
    pub(super) executions: u64,
    pub(super) running: usize,
    pub(super) idle: Duration,
}

/// Sends a message.
pub(super) fn send(to: impl io::Write, message: &impl Serialize) -> io::Result<()> {
    frame::write(to, Kind::Message, &serde_json::to_vec(message)?)
}

/// Receives a message; `None` at the end of the stream.
pub(super) fn recv<T: DeserializeOwned>(from: impl io::Read) -> io::Result<Option<T>> {
    match frame::read(from)? {
        None => Ok(None),
        Some((Kind::Message, bytes)) => Ok(Some(serde_json::from_slice(&bytes)?)),
        Some(_) => Err(io::Error::new(io::ErrorKind::InvalidData, "unexpected kind of frame")),
    }
}

impl From<Failure> for Reply {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Usage(text) => Self::Wrong(text),
            other => Self::Failed(other.to_string()),
        }
    }
}
