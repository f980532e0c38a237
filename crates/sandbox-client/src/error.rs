use std::error::Error as StdError;
use std::fmt::Display;
use std::io;
use std::iter;

use sandbox_api::Problem;

use crate::{InvalidEvent, ServerUrl};

/// Bodies longer than this are pages for a browser and not quoted.
const MAX_QUOTED_BYTES: usize = 200;

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "url is the server, reason is the cause in words")]
pub enum Error {
    /// No connection; nothing was sent.
    #[error("connection to {url} failed: {reason}")]
    Connect { url: String, reason: String },
    /// The response took too long.
    #[error("timed out waiting for a response from {url}")]
    Timeout { url: String },
    /// The connection ended early.
    #[error("{url} closed the connection before its response was complete")]
    Closed { url: String },
    /// The connection failed in another way.
    #[error("{url}: the connection failed: {reason}")]
    Broken { url: String, reason: String },
    /// The response is not what the API promises. `what` it should be.
    #[error("{url} sent an invalid {what}: {reason}")]
    Invalid { url: String, what: &'static str, reason: String },
    /// A message of the stream is not an event.
    #[error(transparent)]
    Event(#[from] InvalidEvent),
    /// The server does not know the API key.
    #[error("{url} rejected the API key")]
    KeyRejected { url: String },
    /// The server needs an API key and the client has none.
    #[error("{url} requires an API key")]
    KeyRequired { url: String },
    /// The server refused the request. `detail` is its explanation.
    #[error("{detail}")]
    Refused { status: u16, detail: String },
    /// The events of an accepted execution cannot be received anymore.
    #[error("lost the connection to execution {id}: {reason}")]
    Lost { id: String, reason: Box<Error> },
    /// A thread cannot be started.
    #[error("cannot start a thread")]
    Thread(#[source] io::Error),
}

impl Error {
    pub(crate) fn invalid(url: &ServerUrl, what: &'static str, reason: impl Display) -> Self {
        Self::Invalid { url: url.to_string(), what, reason: reason.to_string() }
    }

    pub(crate) fn connect(url: &ServerUrl, error: &io::Error) -> Self {
        Self::Connect { url: url.to_string(), reason: why_not_connected(error, false) }
    }

    /// Classifies an error of the HTTP library or of reading a response.
    pub(crate) fn transport(url: &ServerUrl, error: &(dyn StdError + 'static)) -> Self {
        let url = url.to_string();
        let http = find::<reqwest::Error>(error);
        let protocol = find::<hyper::Error>(error);
        if http.is_some_and(reqwest::Error::is_connect) {
            let is_timeout = http.is_some_and(reqwest::Error::is_timeout);
            return Self::Connect { url, reason: why_not_connected(error, is_timeout) };
        }
        if http.is_some_and(reqwest::Error::is_timeout) {
            return Self::Timeout { url };
        }
        if protocol.is_some_and(hyper::Error::is_parse) {
            let reason = format!("{}: is it a sandboxd?", root_cause(error));
            return Self::Invalid { url, what: "response", reason };
        }
        let is_incomplete = protocol.is_some_and(hyper::Error::is_incomplete_message);
        if is_incomplete || has_kind(error, io::ErrorKind::UnexpectedEof) {
            return Self::Closed { url };
        }
        let reason = root_cause(error);
        // The second is for chunks.
        let is_invalid = [io::ErrorKind::InvalidData, io::ErrorKind::InvalidInput];
        if is_invalid.into_iter().any(|kind| has_kind(error, kind)) {
            return Self::Invalid { url, what: "response", reason };
        }
        Self::Broken { url, reason }
    }

    /// The error for a status that is not success, with the server's explanation.
    pub(crate) fn refused(url: &ServerUrl, status: u16, body: &[u8]) -> Self {
        let detail = match serde_json::from_slice::<Problem>(body) {
            Ok(problem) => problem.detail,
            Err(_) => format!("{url} responded with status {status}{}", quoted(body)),
        };
        Self::Refused { status, detail }
    }

    /// Whether a later attempt may succeed: the connection failed, or a proxy misses its server.
    pub(crate) fn is_transient(&self) -> bool {
        matches!(
            self,
            Self::Connect { .. }
                | Self::Timeout { .. }
                | Self::Closed { .. }
                | Self::Broken { .. }
                | Self::Refused { status: 502..=504, .. }
        )
    }
}

fn why_not_connected(error: &(dyn StdError + 'static), is_timeout: bool) -> String {
    #[cfg(feature = "https")]
    if let Some(error) = find::<rustls::Error>(error) {
        return crate::tls::describe(error);
    }
    if is_timeout {
        return "connection timed out".to_owned();
    }
    if has_kind(error, io::ErrorKind::ConnectionRefused) {
        return "connection refused; is sandboxd running?".to_owned();
    }
    // Only a path can be missing.
    if has_kind(error, io::ErrorKind::NotFound) {
        return "no such socket; is sandboxd running?".to_owned();
    }
    if has_kind(error, io::ErrorKind::UnexpectedEof) {
        return "it closed the connection during the TLS handshake".to_owned();
    }
    root_cause(error)
}

/// An error and its causes. The source of an I/O error is that of the error within, which would be skipped.
fn chain<'a>(
    error: &'a (dyn StdError + 'static),
) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    iter::successors(Some(error), |&error| {
        match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            Some(within) => Some(within as &(dyn StdError + 'static)),
            None => error.source(),
        }
    })
}

fn find<'a, E: StdError + 'static>(error: &'a (dyn StdError + 'static)) -> Option<&'a E> {
    chain(error).find_map(|error| error.downcast_ref())
}

fn has_kind(error: &(dyn StdError + 'static), kind: io::ErrorKind) -> bool {
    let has_kind = |error: &io::Error| error.kind() == kind;
    chain(error).any(|error| error.downcast_ref().is_some_and(has_kind))
}

/// The last cause: those before it name layers of the HTTP library.
fn root_cause(error: &(dyn StdError + 'static)) -> String {
    chain(error).last().map(ToString::to_string).unwrap_or_default()
}

/// The body as a suffix of the message, if it is short text.
fn quoted(body: &[u8]) -> String {
    match std::str::from_utf8(body).map(str::trim) {
        Ok(text) if !text.is_empty() && text.len() <= MAX_QUOTED_BYTES => format!(": {text}"),
        _ => String::new(),
    }
}
