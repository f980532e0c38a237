//! Runs one execution on a server.

use std::io;
use std::sync::mpsc;
use std::thread;

use sandbox::{CancelRegistration, CancelToken, Event, EventKind, Report, Request};
use sandbox_api::Accepted;

use super::events::{StreamMessage, read};
use super::failure::{accepted, no_response, refused};
use super::http::{Call, Client, HttpError};
use super::sse::Messages;
use super::translate::translate;
use crate::args::RunArgs;
use crate::errors::Failure;

/// Maximum number of attempts of a request or a stream.
const MAX_ATTEMPTS: u32 = 5;

/// A request that is ready to be sent.
pub(crate) struct RemoteRun {
    client: Client,
    body: Vec<u8>,
    /// The name under which a server takes it only once, however often it is sent.
    idempotency_key: String,
}

/// Why the stream of events stopped before the report.
enum Stopped {
    /// It can be taken up again.
    Cut(HttpError),
    /// Nothing was heard for a while, which is no bad sign by itself.
    Silent,
    /// That is the end of it.
    For(Failure),
}

impl RemoteRun {
    /// What `--server` makes of a request, if it was given.
    pub(crate) fn new(args: &RunArgs, request: &Request) -> Result<Option<Self>, Failure> {
        let Some(client) = Client::from_args(&args.server)? else { return Ok(None) };
        let asked = translate(args, request)?;
        let body = serde_json::to_vec(&asked).map_err(|error| Failure::internal(&error))?;
        Ok(Some(Self { client, body, idempotency_key: request.id().to_string() }))
    }

    /// Has it carried out, telling events as they come.
    pub(crate) fn execute(
        self,
        tell: &mut dyn FnMut(Event),
        cancel: &CancelToken,
    ) -> Result<Report, Failure> {
        let id = self.hand_in()?;
        let resource = format!("/api/v1/execute/{id}");
        let _registration = delete_on_cancel(&self.client, &resource, cancel)?;
        self.follow(&resource, tell)
    }

    /// Sends the request until the server has it, and returns the execution's id.
    fn hand_in(&self) -> Result<String, Failure> {
        let call = Call {
            method: "POST",
            resource: "/api/v1/execute?wait=false",
            headers: &[
                ("Content-Type", "application/json"),
                ("Accept", "application/json"),
                ("Idempotency-Key", &self.idempotency_key),
            ],
            body: Some(&self.body),
        };
        let answer = self.client.call_again(&call, MAX_ATTEMPTS);
        let answer = answer.map_err(|error| no_response(&self.client, &error))?;
        let body = accepted(&self.client, answer)?;
        let id = serde_json::from_slice::<Accepted>(&body).map(|accepted| accepted.id);
        // It becomes part of a path.
        let is_name =
            |id: &String| id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        id.ok().filter(is_name).ok_or_else(|| {
            Failure::Internal(format!(
                "{} sent an invalid response to the request",
                self.client.url()
            ))
        })
    }

    /// Listens until the report is there, and takes up again where the connection was lost.
    fn follow(&self, resource: &str, tell: &mut dyn FnMut(Event)) -> Result<Report, Failure> {
        let (mut heard, mut tries) = (0, 0);
        loop {
            let before = heard;
            let cause = match self.listen(resource, &mut heard, tell) {
                Ok(report) => return Ok(report),
                Err(Stopped::For(failure)) => return Err(failure),
                Err(Stopped::Silent) => {
                    tries = 0;
                    continue;
                }
                Err(Stopped::Cut(cause)) => cause,
            };
            tries = if heard > before { 1 } else { tries + 1 };
            if tries > MAX_ATTEMPTS {
                let reason = no_response(&self.client, &cause);
                let id = resource.rsplit('/').next().unwrap_or(resource);
                return Err(Failure::Internal(format!(
                    "lost the connection to execution {id}: {reason}"
                )));
            }
            self.client.pause_before(tries);
        }
    }

    fn listen(
        &self,
        of: &str,
        heard: &mut u64,
        tell: &mut dyn FnMut(Event),
    ) -> Result<Report, Stopped> {
        let resource = format!("{of}/stream");
        let last = heard.to_string();
        let headers = [("Accept", "text/event-stream"), ("Last-Event-ID", last.as_str())];
        // At the beginning there is no last event.
        let headers = if *heard == 0 { &headers[..1] } else { &headers };
        let call = Call { method: "GET", resource: &resource, headers, body: None };
        let answer = self.client.call(&call).map_err(Stopped::Cut)?;
        match answer.status {
            200 => {}
            // It is over and there are no more events: the server was started anew in between, has run it
            // again, and has fewer to tell of that. The report stands.
            204 => return self.report(of, heard, tell),
            // A server, or a proxy before one, that is about to be there again.
            status @ 502..=504 => return Err(Stopped::cut(format!("it answered {status}"))),
            status => {
                let body = answer.whole().map_err(Stopped::Cut)?;
                return Err(Stopped::For(refused(&self.client, status, &body)));
            }
        }
        let mut messages = Messages::new(answer.stream());
        loop {
            let message = messages.next().map_err(|error| match error.kind() {
                io::ErrorKind::TimedOut => Stopped::Silent,
                io::ErrorKind::InvalidData => {
                    Stopped::For(no_response(&self.client, &HttpError::Lost(error)))
                }
                _ => Stopped::Cut(HttpError::Lost(error)),
            })?;
            let Some(message) = message else {
                let early = io::ErrorKind::UnexpectedEof.into();
                return Err(Stopped::Cut(HttpError::Lost(early)));
            };
            match read(&message.data).map_err(|error| Stopped::For(Failure::internal(&error)))? {
                // What was told before is not told again, whatever the server thinks we have heard.
                StreamMessage::Event(event) if event.seq <= *heard => {}
                StreamMessage::Event(event) => {
                    *heard = event.seq;
                    let report = match &event.kind {
                        EventKind::Report(report) => Some((**report).clone()),
                        _ => None,
                    };
                    tell(event);
                    if let Some(report) = report {
                        return Ok(report);
                    }
                }
                StreamMessage::Unknown(seq) => *heard = seq.max(*heard),
                StreamMessage::Failed(problem) => return Err(Stopped::cut(problem.detail)),
            }
        }
    }

    /// The report by itself.
    fn report(
        &self,
        of: &str,
        heard: &mut u64,
        tell: &mut dyn FnMut(Event),
    ) -> Result<Report, Stopped> {
        let call = Call { method: "GET", resource: of, headers: &[], body: None };
        let answer = self.client.call(&call).map_err(Stopped::Cut)?;
        let body = accepted(&self.client, answer).map_err(Stopped::For)?;
        let report: Report = serde_json::from_slice(&body).map_err(|error| {
            let url = self.client.url();
            Stopped::For(Failure::Internal(format!("{url} sent an invalid report: {error}")))
        })?;
        let note = "the server restarted and ran the program again: only the report has all output";
        let kinds =
            [EventKind::Progress(note.to_owned()), EventKind::Report(Box::new(report.clone()))];
        for kind in kinds {
            *heard += 1;
            tell(Event { seq: *heard, kind });
        }
        Ok(report)
    }
}

impl Stopped {
    fn cut(reason: String) -> Self {
        Self::Cut(HttpError::Lost(io::Error::other(reason)))
    }
}

/// Asks the server to end the execution when the token is cancelled. What becomes of it is heard in the
/// stream of events, so there is nothing to wait for.
fn delete_on_cancel(
    client: &Client,
    resource: &str,
    cancel: &CancelToken,
) -> Result<CancelRegistration, Failure> {
    let (sender, cancelled) = mpsc::channel();
    let (client, resource) = (client.clone(), resource.to_owned());
    let delete = move || {
        // The other end is dropped without a word if the execution ends by itself.
        if cancelled.recv().is_ok() {
            let call = Call { method: "DELETE", resource: &resource, headers: &[], body: None };
            let _ = client.call_again(&call, MAX_ATTEMPTS);
        }
    };
    thread::Builder::new()
        .name("cancel".to_owned())
        .spawn(delete)
        .map_err(|error| Failure::thread(&error))?;
    Ok(cancel.on_cancel(move || {
        let _ = sender.send(());
    }))
}

#[cfg(test)]
mod tests;
