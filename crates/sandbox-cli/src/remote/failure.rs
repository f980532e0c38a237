//! Why a server did not do what it was asked, told in one line.

use std::io;

use sandbox::with_causes;
use sandbox_api::Problem;

use super::http::{Client, HttpError, Response};
use crate::errors::Failure;

/// Longer texts are pages for a browser.
const MAX_QUOTED_BYTES: usize = 200;

/// There was no answer.
pub(super) fn no_response(client: &Client, error: &HttpError) -> Failure {
    let url = client.url();
    Failure::Internal(match error {
        HttpError::Connect(cause) if cause.kind() == io::ErrorKind::ConnectionRefused => {
            format!("nobody answers at {url}: is sandboxd running?")
        }
        HttpError::Connect(cause) => format!("cannot reach {url}: {cause}"),
        HttpError::Lost(cause) if cause.kind() == io::ErrorKind::TimedOut => {
            format!("{url} took too long to answer")
        }
        HttpError::Lost(cause) if cause.kind() == io::ErrorKind::UnexpectedEof => {
            format!("{url} hung up before its answer was complete")
        }
        HttpError::Lost(_) => format!("{url}: {}", with_causes(error)),
    })
}

/// The whole body of an answer that is one, or why it is not.
pub(super) fn accepted(client: &Client, answer: Response) -> Result<Vec<u8>, Failure> {
    let status = answer.status;
    let body = answer.whole().map_err(|error| no_response(client, &error))?;
    if (200..300).contains(&status) { Ok(body) } else { Err(refused(client, status, &body)) }
}

/// The server said no, and perhaps why.
pub(super) fn refused(client: &Client, status: u16, body: &[u8]) -> Failure {
    let url = client.url();
    let text = match status {
        401 if client.has_key() => format!("{url} does not take this key"),
        401 => format!("{url} needs a key: set SANDBOX_RUN_API_KEY, or give it with --api-key"),
        _ => match serde_json::from_slice::<Problem>(body) {
            Ok(problem) => problem.detail,
            Err(_) => format!("{url} answered {status}{}", quoted(body)),
        },
    };
    match status {
        // Too much at once is nobody's mistake.
        429 | 500.. | 300..400 => Failure::Internal(text),
        _ => Failure::Usage(text),
    }
}

/// A text that is short enough to be a message.
fn quoted(body: &[u8]) -> String {
    match std::str::from_utf8(body).map(str::trim) {
        Ok(text) if !text.is_empty() && text.len() <= MAX_QUOTED_BYTES => format!(": {text}"),
        _ => String::new(),
    }
}
