//! `--server`: the same commands, carried out by a sandboxd.

mod body;
mod clock;
mod connection;
mod errand;
mod events;
mod http;
mod refusal;
mod runtimes;
mod sse;
#[cfg(feature = "https")]
mod tls;
mod translate;
mod url;

#[cfg(test)]
mod canned;

pub(crate) use errand::Errand;
pub(crate) use events::{News, read as read_event};
pub(crate) use runtimes::runtimes;
pub(crate) use url::{ApiKey, ServerUrl};

use crate::args::ServerArgs;
use crate::errors::Failure;
use http::{Client, ClientError};

/// A client for the server that was named, if one was.
fn client(args: &ServerArgs) -> Result<Option<Client>, Failure> {
    let Some(url) = &args.server else { return Ok(None) };
    let client = Client::new(url.clone(), args.api_key.clone());
    client.map(Some).map_err(|error| match error {
        ClientError::Key(error) => Failure::Usage(format!("--api-key: {error}")),
        #[cfg(feature = "https")]
        ClientError::Trust(error) => Failure::Ours(error.to_string()),
    })
}
