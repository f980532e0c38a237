//! What a client and its helper say to each other.

use std::io;
use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::executable::Executable;
use super::frame::{self, Kind};
use super::wire_request::WireRequest;
use crate::errors::Failure;

/// What a client begins with.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum HelperRequest {
    /// Carry this out. The files follow.
    Execute(Box<Order>),
    /// Who are you?
    Status,
    /// Take no more, and end when what is running has ended.
    Go,
}

/// A request, and what must hold for the helper to do what the client itself would do.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Order {
    pub(super) executable: Executable,
    pub(super) context: String,
    /// The language as the client found it on this host just now.
    pub(super) runtime: String,
    /// How long the helper stays without work from now on.
    pub(super) idle: Duration,
    /// Compile it anew.
    pub(super) no_cache: bool,
    pub(super) asked: WireRequest,
}

/// What a helper answers. Events come as frames of their own.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Reply {
    /// The request is being carried out. Before this, nothing was done for it.
    Taken,
    /// This helper is of another executable, or set up in another way.
    Differs,
    /// Read some of the standard input, at most so many bytes.
    WantInput(usize),
    /// There is no report, because the request is wrong.
    Wrong(String),
    /// There is no report, because we failed.
    Failed(String),
    /// There is no helper, because no sandbox can be started here.
    NoSandbox(String),
    /// Who it is.
    Status(Status),
    /// It takes no more, and this many executions are still running.
    Going(usize),
}

/// What is known of a helper.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Status {
    pub(super) process: u32,
    pub(super) version: String,
    pub(super) since: DateTime<Utc>,
    /// How many requests it took, those that are running included.
    pub(super) executions: u64,
    pub(super) running: usize,
    pub(super) idle: Duration,
}

/// Says something.
pub(super) fn send(to: impl io::Write, message: &impl Serialize) -> io::Result<()> {
    frame::write(to, Kind::Message, &serde_json::to_vec(message)?)
}

/// Hears something; none if the other side has nothing more to say.
pub(super) fn recv<T: DeserializeOwned>(from: impl io::Read) -> io::Result<Option<T>> {
    match frame::read(from)? {
        None => Ok(None),
        Some((Kind::Message, bytes)) => Ok(Some(serde_json::from_slice(&bytes)?)),
        Some(_) => Err(io::Error::new(io::ErrorKind::InvalidData, "it is not its turn")),
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
