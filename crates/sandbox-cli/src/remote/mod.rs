//! `--server`: run commands on a sandboxd server.

mod runtimes;
mod stdin;
mod translate;

use sandbox::{CancelToken, Event, Report, Request, with_causes};
use sandbox_api::ExecuteRequest;
use sandbox_client::{Client, ClientError, Error};

use crate::args::{RunArgs, ServerArgs};
use crate::errors::Failure;

pub(crate) use runtimes::runtimes;
use stdin::Input;

/// A request that is ready to be sent.
pub(crate) struct RemoteRun {
    client: Client,
    request: ExecuteRequest,
    idempotency_key: String,
    /// The standard input, which is sent while the program runs.
    input: Option<Input>,
}

impl RemoteRun {
    /// Translates a request for the server of `--server`, if it was given.
    pub(crate) fn new(args: &RunArgs, request: &Request) -> Result<Option<Self>, Failure> {
        let Some(client) = client(&args.server)? else { return Ok(None) };
        let idempotency_key = request.id().to_string();
        let input = stdin::input(request.stdin());
        let request = translate::translate(args, request)?;
        Ok(Some(Self { client, request, idempotency_key, input }))
    }

    /// Executes it and passes on events as they come.
    pub(crate) fn execute(
        self,
        on_event: &mut dyn FnMut(Event),
        cancel: &CancelToken,
    ) -> Result<Report, Failure> {
        let client = self.client;
        let (id, events) = client.execute_streaming(&self.request, &self.idempotency_key)?;
        let Some(input) = self.input else {
            return Ok(client.follow_stream(&id, events, on_event, cancel)?);
        };
        let failure = stdin::send(client.clone(), id.clone(), input, cancel.clone())?;
        let report = client.follow_stream(&id, events, on_event, cancel)?;
        match failure.try_recv() {
            Ok(error) => Err(error.into()),
            Err(_) => Ok(report),
        }
    }
}

/// A client of the server of `--server`, if it was given.
fn client(args: &ServerArgs) -> Result<Option<Client>, Failure> {
    let Some(url) = &args.server else { return Ok(None) };
    let client = Client::new(url.clone(), args.api_key.as_ref());
    client.map(Some).map_err(|error| match error {
        ClientError::Key(error) => Failure::Usage(format!("--api-key: {error}")),
        error => Failure::internal(&error),
    })
}

/// An overloaded or failing server is not the user's error; a refused request is.
impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let text = with_causes(&error);
        match error {
            Error::KeyRequired { .. } => {
                Self::Usage(format!("{text}: set SANDBOX_RUN_API_KEY or use --api-key"))
            }
            Error::Refused { status: 429, .. } => Self::Internal(text),
            Error::KeyRejected { .. } | Error::Refused { status: 400..500, .. } => {
                Self::Usage(text)
            }
            _ => Self::Internal(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_refused_requests_are_errors_of_the_user() {
        let url = || "http://box".to_owned();
        let refused = |status| Error::Refused { status, detail: "no".to_owned() };
        for (error, code, message) in [
            (refused(400), 2, "no"),
            (refused(429), 125, "no"),
            (refused(301), 125, "no"),
            (refused(503), 125, "no"),
            (Error::KeyRejected { url: url() }, 2, "http://box rejected the API key"),
            (
                Error::KeyRequired { url: url() },
                2,
                "http://box requires an API key: set SANDBOX_RUN_API_KEY or use --api-key",
            ),
            (
                Error::Timeout { url: url() },
                125,
                "timed out waiting for a response from http://box",
            ),
            (
                Error::Thread(std::io::Error::other("too many")),
                125,
                "cannot start a thread: too many",
            ),
        ] {
            let failure = Failure::from(error);
            assert_eq!(failure.exit_code(), code, "{failure}");
            assert_eq!(failure.to_string(), message);
        }
    }
}
