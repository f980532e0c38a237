//! Runs one execution in the helper.

use std::io::{self, Read};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, PoisonError};
use std::thread;
use std::time::Duration;

use sandbox::{
    CancelToken, Event, EventKind, Isolation, LanguageChoice, Report, Request, Runtimes, Stdin,
};
use sandbox_client::{StreamMessage, parse_event};

use super::connect::{hand_in, unreachable};
use super::directory::HelperDirectory;
use super::executable::Executable;
use super::frame::{self, Kind};
use super::message::{Order, Reply};
use super::process_context::ProcessContext;
use super::settings;
use super::shared_sandbox::describe;
use super::wire_request::WireRequest;
use crate::args::{IsolationChoice, RunArgs};
use crate::errors::Failure;

type Input = Box<dyn Read + Send>;

/// A request that is ready to be sent to the helper.
pub(crate) struct WarmRun {
    asked: WireRequest,
    /// Contents, in the order of the request's files.
    files: Vec<Vec<u8>>,
    input: Option<Input>,
    no_cache: bool,
    idle: Duration,
    runtimes: Arc<Runtimes>,
    language: LanguageChoice,
    /// Why the backend was selected; goes into the report.
    isolation_reason: Option<String>,
}

impl WarmRun {
    /// Prepares a request for the helper, if `--warm` was given.
    pub(crate) fn new(
        args: &RunArgs,
        runtimes: &Arc<Runtimes>,
        request: &Request,
    ) -> Result<Option<Self>, Failure> {
        if !args.warm {
            return Ok(None);
        }
        if args.server.server.is_some() {
            let reason = "--warm cannot be used with --server: the helper runs on this host";
            return Err(Failure::Usage(reason.to_owned()));
        }
        if request.image().is_some() || runtimes.image_of(request.language().name()).is_some() {
            let reason =
                "--warm cannot be used with an image: the helper uses the toolchains of this host";
            return Err(Failure::Usage(reason.to_owned()));
        }
        let preferred = match args.isolation {
            IsolationChoice::Named(isolation) => isolation,
            IsolationChoice::Auto => args.backend.first(),
        };
        if preferred != Isolation::Native {
            let reason = format!(
                "--warm cannot be used with --isolation {preferred}: the helper runs native sandboxes"
            );
            return Err(Failure::Usage(reason));
        }
        let asked = WireRequest::of(request)?;
        let input = match request.stdin() {
            Stdin::Reader(reader) => reader.lock().unwrap_or_else(PoisonError::into_inner).take(),
            _ => None,
        };
        Ok(Some(Self {
            asked,
            files: request.files().iter().map(|file| file.contents.clone()).collect(),
            input,
            no_cache: args.no_cache,
            idle: settings::idle()?,
            runtimes: Arc::clone(runtimes),
            language: request.language().clone(),
            isolation_reason: (args.isolation == IsolationChoice::Auto)
                .then(|| preferred.reason_of_first()),
        }))
    }

    /// Executes the request in the helper, and passes on events as they arrive.
    pub(crate) fn execute(
        self,
        tell: &mut dyn FnMut(Event),
        cancel: &CancelToken,
    ) -> Result<Report, Failure> {
        let context = ProcessContext::own().map_err(unreachable)?;
        let order = Order {
            executable: Executable::own().map_err(unreachable)?,
            context: context.as_str().to_owned(),
            runtime: describe(&self.runtimes, &self.language)?,
            idle: self.idle,
            no_cache: self.no_cache,
            asked: self.asked,
        };
        let stream = hand_in(&HelperDirectory::of_user()?, &context.key(), order, &self.files)?;
        let clone = || stream.try_clone().map_err(unreachable);
        let ours = clone()?;
        // Closing the write side cancels the execution. It never blocks.
        let _registration = cancel.on_cancel(move || {
            let _ = ours.shutdown(Shutdown::Write);
        });
        let wants = self.input.map(|input| pump(input, clone()?)).transpose()?;
        let reason = self.isolation_reason;
        follow(&stream, wants.as_ref(), &mut |mut event| {
            if let EventKind::Report(report) = &mut event.kind {
                report.isolation_reason.clone_from(&reason);
            }
            tell(event);
        })
        .map(|report| Report { isolation_reason: reason.clone(), ..report })
    }
}

/// Handles frames until the report arrives.
fn follow(
    stream: &UnixStream,
    wants: Option<&Sender<usize>>,
    tell: &mut dyn FnMut(Event),
) -> Result<Report, Failure> {
    loop {
        let (kind, bytes) = match frame::read(stream) {
            Ok(Some(frame)) => frame,
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                return Err(unreadable(&error));
            }
            Ok(None) | Err(_) => return Err(lost()),
        };
        if kind == Kind::Event {
            if let Some(report) = handle_event(&bytes, tell)? {
                return Ok(report);
            }
            continue;
        }
        match serde_json::from_slice(&bytes).map_err(|error| unreadable(&error))? {
            Reply::WantInput(most) => {
                // If nobody reads it, the helper is told so by the end of the connection.
                let _ = wants.map(|wants| wants.send(most));
            }
            Reply::Wrong(text) => return Err(Failure::Usage(text)),
            Reply::Failed(text) => return Err(Failure::Internal(text)),
            other => return Err(unreadable(&format!("{other:?}"))),
        }
    }
}

fn handle_event(bytes: &[u8], tell: &mut dyn FnMut(Event)) -> Result<Option<Report>, Failure> {
    let text = std::str::from_utf8(bytes).map_err(|error| unreadable(&error))?;
    let StreamMessage::Event(event) = parse_event(text).map_err(|error| unreadable(&error))? else {
        return Err(unreadable(&"an event that is not known"));
    };
    let report = match &event.kind {
        EventKind::Report(report) => Some((**report).clone()),
        _ => None,
    };
    tell(event);
    Ok(report)
}

/// Reads standard input when it is asked for, and no more of it than that: exactly what a sandbox of our own
/// would read. The thread may wait in a read for longer than the execution lasts, and ends with us.
fn pump(mut input: Input, stream: UnixStream) -> Result<Sender<usize>, Failure> {
    let (sender, wants): (_, Receiver<usize>) = mpsc::channel();
    let answer = move || {
        for most in wants {
            let mut buffer = vec![0; most.min(64 * 1024)];
            let count = loop {
                match input.read(&mut buffer) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    // What cannot be read ends there, as it does without a helper.
                    result => break result.unwrap_or(0),
                }
            };
            if frame::write(&stream, Kind::Input, &buffer[..count]).is_err() {
                return;
            }
        }
    };
    thread::Builder::new()
        .name("input".to_owned())
        .spawn(answer)
        .map_err(|error| Failure::thread(&error))?;
    Ok(sender)
}

fn lost() -> Failure {
    Failure::Internal(
        "the helper of --warm exited during the execution, and its sandbox with it: \
         run the command again to start a new one"
            .to_owned(),
    )
}

fn unreadable(what: &dyn std::fmt::Display) -> Failure {
    Failure::Internal(format!("invalid reply from the helper of --warm: {what}"))
}
