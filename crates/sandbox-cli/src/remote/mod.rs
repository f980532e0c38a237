//! `--server`: the same commands, carried out by a sandboxd.

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
        ClientError::Trust(error) => Failure::Internal(error.to_string()),
    })
}
