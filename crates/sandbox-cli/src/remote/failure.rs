//! Describes why a request to a server failed, in one line.

use std::io;

use sandbox::with_causes;
use sandbox_api::Problem;

use super::http::{Client, HttpError, Response};
use crate::errors::Failure;

/// Longer bodies are pages for a browser and not quoted.
const MAX_QUOTED_BYTES: usize = 200;

/// The failure for a request without a response.
pub(super) fn no_response(client: &Client, error: &HttpError) -> Failure {
    let url = client.url();
    Failure::Internal(match error {
        HttpError::Connect(cause) if cause.kind() == io::ErrorKind::ConnectionRefused => {
            format!("connection to {url} failed: connection refused; is sandboxd running?")
        }
        HttpError::Connect(cause) => format!("connection to {url} failed: {cause}"),
        HttpError::Lost(cause) if cause.kind() == io::ErrorKind::TimedOut => {
            format!("timed out waiting for a response from {url}")
        }
        HttpError::Lost(cause) if cause.kind() == io::ErrorKind::UnexpectedEof => {
            format!("{url} closed the connection before its response was complete")
        }
        HttpError::Lost(_) => format!("{url}: {}", with_causes(error)),
    })
}

/// The whole body of a successful response, or the failure.
pub(super) fn accepted(client: &Client, answer: Response) -> Result<Vec<u8>, Failure> {
    let status = answer.status;
    let body = answer.whole().map_err(|error| no_response(client, &error))?;
    if (200..300).contains(&status) { Ok(body) } else { Err(refused(client, status, &body)) }
}

/// The failure for an error status, with the detail that the server gave.
pub(super) fn refused(client: &Client, status: u16, body: &[u8]) -> Failure {
    let url = client.url();
    let text = match status {
        401 if client.has_key() => format!("{url} rejected the API key"),
        401 => format!("{url} requires an API key: set SANDBOX_RUN_API_KEY or use --api-key"),
        _ => match serde_json::from_slice::<Problem>(body) {
            Ok(problem) => problem.detail,
            Err(_) => format!("{url} responded with status {status}{}", quoted(body)),
        },
    };
    match status {
        // An overloaded or failing server is not the user's error.
        429 | 500.. | 300..400 => Failure::Internal(text),
        _ => Failure::Usage(text),
    }
}

/// The body as a suffix of the message, if it is short text.
fn quoted(body: &[u8]) -> String {
    match std::str::from_utf8(body).map(str::trim) {
        Ok(text) if !text.is_empty() && text.len() <= MAX_QUOTED_BYTES => format!(": {text}"),
        _ => String::new(),
    }
}
