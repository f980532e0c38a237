//! `sandbox-run run`: execute a program and return its exit code.
//!
//! Three threads: `execute` runs the program, `print` prints its events, and the main thread waits for signals and
//! the result. A slow reader of standard output therefore delays neither the limits of the program nor Ctrl-C. The
//! queue of unprinted events is bounded by the output limit.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::thread;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use sandbox::{
    BackendError, CancelToken, Event, LanguageChoice, NetworkPolicy, Report, Request, Runtimes,
    Sandbox, StartError,
};

use crate::args::{IsolationChoice, RunArgs};
use crate::errors::{EXIT_CANCELLED, Failure};
use crate::input::{Languages, gather, own_stdin, read_text};
use crate::output::{self, Presenter};
use crate::output_dir::OutputDirectory;
use crate::remote::RemoteRun;
use crate::request::{Prepared, prepare, template_wants_code};
use crate::signals;
use crate::warm::WarmRun;

/// Sent to the main thread.
enum MainMessage {
    /// A stop signal arrived.
    Stop,
    /// The printer has finished; the exit code of the command.
    Done(Result<u8, Failure>),
}

/// Sent from the `execute` thread to the `print` thread.
enum PrinterMessage {
    Event(Event),
    End(Box<Result<Report, Failure>>),
}

pub(crate) fn run(args: &RunArgs) -> Result<u8, Failure> {
    let runtimes = Arc::new(Runtimes::load(None).map_err(|error| Failure::internal(&error))?);
    let prepared = build_request(args, &runtimes)?;
    let remote = RemoteRun::new(args, &prepared.request)?;
    let warm = WarmRun::new(args, &runtimes, &prepared.request)?;
    let directory = args.output_dir.as_deref().map(OutputDirectory::open);
    let directory = directory.transpose()?;
    let mut presenter = output::presenter(args.format(), args.quiet);
    for note in &prepared.notes {
        let printed = presenter.note(note);
        printed.map_err(|error| Failure::printing(&error))?;
    }
    let printer = Printer { presenter, directory, cancel: CancelToken::new() };
    match (remote, warm) {
        (Some(run), _) => supervise(printer, |on_event, cancel| run.execute(on_event, cancel)),
        (_, Some(run)) => supervise(printer, |on_event, cancel| run.execute(on_event, cancel)),
        (None, None) => run_locally(args, &runtimes, prepared.request, printer),
    }
}

fn run_locally(
    args: &RunArgs,
    runtimes: &Arc<Runtimes>,
    request: Request,
    printer: Printer,
) -> Result<u8, Failure> {
    // Before any other thread exists, because starting the sandbox forks.
    let sandbox = start_sandbox(args, Arc::clone(runtimes)).or_else(|failure| {
        // A wrong request is reported as such even on a host that cannot start a sandbox.
        canonical_name(args, runtimes, request.language()).and(Err(failure))
    })?;
    // The main thread holds the last reference: if the `execute` thread did, the process could exit during teardown.
    // That thread drops its reference before it sends the result.
    let sandbox = Arc::new(sandbox);
    let shared = Arc::clone(&sandbox);
    supervise(printer, move |on_event, cancel| {
        let mut on_event = |event: &Event| on_event(event.clone());
        shared.execute_with(request, &mut on_event, cancel).map_err(Failure::from)
    })
}

/// Runs `work` on one thread, prints its events on another, and waits for both.
fn supervise(
    printer: Printer,
    work: impl FnOnce(&mut dyn FnMut(Event), &CancelToken) -> Result<Report, Failure> + Send + 'static,
) -> Result<u8, Failure> {
    let (to_main, messages) = mpsc::channel();
    let cancel = printer.cancel.clone();
    let token = cancel.clone();
    let started = signals::forward(to_main.clone(), || MainMessage::Stop)
        .and_then(|()| {
            let (to_printer, messages) = mpsc::channel();
            spawn("print", move || {
                let _ = to_main.send(MainMessage::Done(printer.print(&messages)));
            })?;
            spawn("execute", move || {
                let mut on_event = |event: Event| {
                    // Fails only after the printer has ended, which also cancels the execution.
                    let _ = to_printer.send(PrinterMessage::Event(event));
                };
                let result = work(&mut on_event, &token);
                let _ = to_printer.send(PrinterMessage::End(Box::new(result)));
            })
        })
        .map_err(|error| Failure::thread(&error));
    started?;
    wait(&messages, &cancel)
}

/// The first stop signal cancels the execution and waits for the report. The second returns at once; the kernel
/// kills the sandbox when this process exits.
fn wait(messages: &Receiver<MainMessage>, cancel: &CancelToken) -> Result<u8, Failure> {
    loop {
        match messages.recv() {
            Ok(MainMessage::Stop) if cancel.is_cancelled() => return Ok(EXIT_CANCELLED),
            Ok(MainMessage::Stop) => cancel.cancel(),
            Ok(MainMessage::Done(result)) => return result,
            Err(_) => {
                return Err(Failure::Internal("the printer thread ended without a result".into()));
            }
        }
    }
}

fn build_request(args: &RunArgs, runtimes: &Runtimes) -> Result<Prepared, Failure> {
    let of_file = |name: &str, line: &str| {
        let found = runtimes.language_for_file(name, line);
        found.map(ToOwned::to_owned)
    };
    let named = |name: &str| {
        let choice: LanguageChoice = name.parse().map_err(|error| Failure::usage(&error))?;
        match canonical_name(args, runtimes, &choice) {
            // The server may have languages that this host lacks.
            Err(_) if args.server.server.is_some() => Ok(choice.name().to_owned()),
            result => result,
        }
    };
    let of_project = |paths: &[&str]| runtimes.language_for_project(paths).map(ToOwned::to_owned);
    let entry = |language: &str, paths: &[&str]| {
        runtimes.project_entry(language, paths).map(ToOwned::to_owned)
    };
    let languages =
        Languages { of_file: &of_file, named: &named, of_project: &of_project, entry: &entry };
    let template = args.template.as_deref().map(read_text).transpose()?;
    let template = template.as_deref();
    let wants_code = template.is_none_or(template_wants_code);
    let gathered = gather(args, wants_code, languages, own_stdin(&mut io::stdin()))?;
    let mut prepared = prepare(args, gathered.program, template, gathered.notes, languages)?;
    if args.server.server.is_some() && prepared.request.snippet().is_some() {
        let note = "--server runs the filled-in template: line numbers in errors are those of the template, not of your code";
        prepared.notes.push(note.to_owned());
    }
    Ok(prepared)
}

/// The canonical name of a language, given by name or alias.
fn canonical_name(
    args: &RunArgs,
    runtimes: &Runtimes,
    choice: &LanguageChoice,
) -> Result<String, Failure> {
    let name = runtimes.proper_name(choice).map_err(|error| Failure::usage(&error))?;
    if args.image.is_none() && runtimes.image_of(name).is_none() {
        // Fail before any file is read or any process is started.
        runtimes.resolve(choice).map_err(|error| Failure::usage(&error))?;
    }
    Ok(name.to_owned())
}

fn start_sandbox(args: &RunArgs, runtimes: Arc<Runtimes>) -> Result<Sandbox, Failure> {
    if args.network == NetworkPolicy::Allowlist {
        raise_open_files_limit();
    }
    let mut builder = Sandbox::builder().runtimes(runtimes).for_one_execution();
    builder = match args.isolation {
        IsolationChoice::Named(isolation) => builder.isolation(isolation),
        IsolationChoice::Auto => builder
            .isolation_order(args.backend.isolation_order().iter().copied())
            .isolation_may_lack(args.allow_missing.iter().copied()),
    };
    builder = args.backend.apply(builder);
    if args.no_cache {
        builder = builder.without_compile_cache();
    }
    builder.build().map_err(|error| match error {
        // The reason says what to install or which backend to use.
        StartError::Backend(BackendError::Refused(reason)) => Failure::Usage(reason),
        error => Failure::internal(&error),
    })
}

/// Raises the soft limit of open files to the hard limit: the egress proxy needs two descriptors per connection.
fn raise_open_files_limit() {
    let limit = getrlimit(Resource::Nofile);
    // On failure, fewer connections fit at once.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new().name(name.into()).spawn(work)?;
    Ok(())
}

/// Prints events and the report, and writes the collected files.
struct Printer {
    presenter: Box<dyn Presenter>,
    directory: Option<OutputDirectory>,
    cancel: CancelToken,
}

impl Printer {
    fn print(mut self, messages: &Receiver<PrinterMessage>) -> Result<u8, Failure> {
        let mut printed = Ok(());
        for message in messages {
            match message {
                PrinterMessage::Event(event) if printed.is_ok() => {
                    printed = self.presenter.event(&event);
                    if printed.is_err() {
                        // The output has no reader any more. Cancel the program, and wait for its end so that the
                        // sandbox is torn down in order.
                        self.cancel.cancel();
                    }
                }
                PrinterMessage::Event(_) => {}
                PrinterMessage::End(result) => {
                    printed.map_err(|error| Failure::printing(&error))?;
                    let report = (*result)?;
                    return self.finish(&report);
                }
            }
        }
        Err(Failure::Internal("the execution thread ended without a report".into()))
    }

    fn finish(mut self, report: &Report) -> Result<u8, Failure> {
        let written = match &self.directory {
            Some(directory) => directory.write(&report.output_files),
            None => Ok(()),
        };
        let printed = self.presenter.report(report);
        printed.map_err(|error| Failure::printing(&error))?;
        written?;
        Ok(report.exit_code_for_shell())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_signal_cancels_and_the_second_does_not_wait() {
        let (sender, messages) = mpsc::channel();
        let cancel = CancelToken::new();
        sender.send(MainMessage::Stop).unwrap();
        sender.send(MainMessage::Done(Ok(130))).unwrap();
        assert_eq!(wait(&messages, &cancel).unwrap(), 130);
        assert!(cancel.is_cancelled());

        sender.send(MainMessage::Stop).unwrap();
        assert_eq!(wait(&messages, &cancel).unwrap(), EXIT_CANCELLED);
    }

    struct Closed;

    impl Presenter for Closed {
        fn note(&mut self, _: &str) -> io::Result<()> {
            Ok(())
        }

        fn event(&mut self, _: &Event) -> io::Result<()> {
            Err(io::ErrorKind::BrokenPipe.into())
        }

        fn report(&mut self, _: &Report) -> io::Result<()> {
            panic!("the report is printed to a closed pipe")
        }
    }

    #[test]
    fn a_closed_pipe_cancels_the_execution_without_a_message() {
        let cancel = CancelToken::new();
        let printer =
            Printer { presenter: Box::new(Closed), directory: None, cancel: cancel.clone() };
        let (sender, messages) = mpsc::channel();
        for _ in 0..2 {
            let kind = sandbox::EventKind::Queued;
            sender.send(PrinterMessage::Event(Event { seq: 1, kind })).unwrap();
        }
        let report = crate::output::fixtures::report();
        sender.send(PrinterMessage::End(Box::new(Ok(report)))).unwrap();
        let failure = printer.print(&messages).unwrap_err();
        assert!(cancel.is_cancelled());
        assert!(failure.message().is_none());
    }
}
