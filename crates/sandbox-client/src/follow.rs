use std::sync::mpsc;
use std::thread;

use sandbox_core::{CancelRegistration, CancelToken, Event, EventKind, Report};

use crate::{Client, Error, Events, MAX_ATTEMPTS, StreamMessage};

impl Client {
    /// Passes the events of an execution to `on_event` until its report, which it returns. Reconnects when the
    /// connection is lost and passes no event twice. Cancelling the token cancels the execution on the server; its
    /// report still follows.
    pub fn follow(
        &self,
        id: &str,
        on_event: &mut dyn FnMut(Event),
        cancel: &CancelToken,
    ) -> Result<Report, Error> {
        self.follow_from(id, None, on_event, cancel)
    }

    /// Does the same with an execution whose events [`Self::execute_streaming`] has begun to stream.
    pub fn follow_stream(
        &self,
        id: &str,
        events: Events,
        on_event: &mut dyn FnMut(Event),
        cancel: &CancelToken,
    ) -> Result<Report, Error> {
        self.follow_from(id, Some(events), on_event, cancel)
    }

    fn follow_from(
        &self,
        id: &str,
        mut events: Option<Events>,
        on_event: &mut dyn FnMut(Event),
        cancel: &CancelToken,
    ) -> Result<Report, Error> {
        let disconnected = |reason| Error::Lost { id: id.to_owned(), reason: Box::new(reason) };
        let _registration = self.cancel_with(id, cancel)?;
        let (mut last, mut attempts) = (0, 0);
        loop {
            let before = last;
            let error = match self.listen(id, events.take(), &mut last, on_event) {
                Ok(Some(report)) => return Ok(report),
                Ok(None) => {
                    attempts = 0;
                    continue;
                }
                Err(error) if error.is_transient() => error,
                // The server crashed before the execution was stored.
                Err(error @ Error::Refused { status: 404, .. }) if last > 0 => {
                    return Err(disconnected(error));
                }
                Err(error) => return Err(error),
            };
            attempts = if last > before { 1 } else { attempts + 1 };
            if attempts > MAX_ATTEMPTS {
                return Err(disconnected(error));
            }
            self.wait_before_retry(attempts);
        }
    }

    /// Reads one stream: this, or else one from the event after `last`. `None` if nothing came for a while: the connection may be dead
    /// without either side knowing, which is no failure of the server.
    fn listen(
        &self,
        id: &str,
        events: Option<Events>,
        last: &mut u64,
        on_event: &mut dyn FnMut(Event),
    ) -> Result<Option<Report>, Error> {
        let events = match events {
            Some(events) => Some(events),
            None => self.events(id, *last)?,
        };
        let Some(events) = events else {
            return self.report_alone(id, last, on_event).map(Some);
        };
        for message in events {
            match message {
                // An event that was received before is not passed on again, whatever the server sends.
                Ok(StreamMessage::Event(event)) if event.seq <= *last => {}
                Ok(StreamMessage::Event(event)) => {
                    *last = event.seq;
                    let report = match &event.kind {
                        EventKind::Report(report) => Some((**report).clone()),
                        _ => None,
                    };
                    on_event(event);
                    if report.is_some() {
                        return Ok(report);
                    }
                }
                Ok(StreamMessage::Unknown(seq)) => *last = seq.max(*last),
                Ok(StreamMessage::Failed(problem)) => {
                    return Err(Error::Broken {
                        url: self.url().to_string(),
                        reason: problem.detail,
                    });
                }
                Err(Error::Timeout { .. }) => return Ok(None),
                Err(error) => return Err(error),
            }
        }
        Err(Error::Closed { url: self.url().to_string() })
    }

    /// The report of an execution without further events: the server was restarted, ran the program again, and has
    /// fewer events of that than were received before.
    fn report_alone(
        &self,
        id: &str,
        last: &mut u64,
        on_event: &mut dyn FnMut(Event),
    ) -> Result<Report, Error> {
        let report = self.get(id)?;
        let note = "the server restarted and ran the program again: only the report has all output";
        for kind in
            [EventKind::Progress(note.to_owned()), EventKind::Report(Box::new(report.clone()))]
        {
            *last += 1;
            on_event(Event { seq: *last, kind });
        }
        Ok(report)
    }

    /// Cancels the execution when the token is cancelled. The stream of events tells the outcome, so nothing waits for
    /// the response.
    fn cancel_with(&self, id: &str, cancel: &CancelToken) -> Result<CancelRegistration, Error> {
        let (sender, cancelled) = mpsc::channel();
        let (client, id) = (self.clone(), id.to_owned());
        let wait = move || {
            // The sender is dropped if the execution ends by itself.
            if cancelled.recv().is_ok() {
                let _ = client.cancel(&id);
            }
        };
        thread::Builder::new().name("cancel".to_owned()).spawn(wait).map_err(Error::Thread)?;
        Ok(cancel.on_cancel(move || {
            let _ = sender.send(());
        }))
    }
}
