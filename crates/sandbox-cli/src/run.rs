//! `sandbox-run run`: from arguments to an exit code.
//!
//! Three threads share the work. One carries the execution out, one prints what happens, and the
//! main thread waits for signals and the end. A reader that takes its time therefore delays neither
//! the limits of the program nor Ctrl-C. What waits to be printed is bounded by the output limit.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::thread;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use sandbox::{
    BackendError, CancelToken, Event, ExecuteError, LanguageChoice, NetworkPolicy, Report, Request,
    Runtimes, Sandbox, StartError,
};

use crate::args::{IsolationChoice, RunArgs};
use crate::errors::Failure;
use crate::input::{Languages, gather, own_stdin, read_text};
use crate::output::{self, Presenter};
use crate::remote::Errand;
use crate::request::{Prepared, prepare, template_wants_code};
use crate::signals;
use crate::warm;
use crate::write_files::OutputDirectory;

/// What the main thread hears.
enum Message {
    /// A signal asked us to stop.
    Stop,
    /// Everything is done and printed.
    Done(Result<u8, Failure>),
}

/// What the printing thread hears.
enum News {
    Event(Event),
    End(Box<Result<Report, Failure>>),
}

/// The code a shell gives for SIGINT, and ours for everything that was cancelled.
const CANCELLED: u8 = 130;

pub(crate) fn run(args: &RunArgs) -> Result<u8, Failure> {
    let runtimes = Arc::new(Runtimes::load(None).map_err(|error| Failure::ours(&error))?);
    let prepared = request(args, &runtimes)?;
    let errand = Errand::new(args, &prepared.request)?;
    let warm = warm::Errand::new(args, &runtimes, &prepared.request)?;
    let directory = args.output_dir.as_deref().map(OutputDirectory::open);
    let directory = directory.transpose()?;
    let mut presenter = output::presenter(args.format(), args.quiet);
    for note in &prepared.notes {
        let printed = presenter.note(note);
        printed.map_err(|error| Failure::printing(&error))?;
    }
    let printer = Printer { presenter, directory, cancel: CancelToken::new() };
    match (errand, warm) {
        (Some(errand), _) => supervise(printer, |tell, cancel| errand.carry_out(tell, cancel)),
        (_, Some(errand)) => supervise(printer, |tell, cancel| errand.carry_out(tell, cancel)),
        (None, None) => run_here(args, &runtimes, prepared.request, printer),
    }
}

fn run_here(
    args: &RunArgs,
    runtimes: &Arc<Runtimes>,
    request: Request,
    printer: Printer,
) -> Result<u8, Failure> {
    // Before any other thread exists: starting the sandbox starts processes.
    let sandbox = start(args, Arc::clone(runtimes)).or_else(|failure| {
        // On a host without walls a wrong request is still a wrong request.
        named(args, runtimes, request.language()).and(Err(failure))
    })?;
    // The main thread must be the last to hold the sandbox, or the process could end in the middle of
    // taking it down: the other holder drops its share before it tells the end.
    let sandbox = Arc::new(sandbox);
    let shared = Arc::clone(&sandbox);
    supervise(printer, move |tell, cancel| execute(&shared, request, tell, cancel))
}

/// Lets a thread do the work and another one print what comes of it, and waits for both.
fn supervise(
    printer: Printer,
    work: impl FnOnce(&mut dyn FnMut(Event), &CancelToken) -> Result<Report, Failure> + Send + 'static,
) -> Result<u8, Failure> {
    let (to_main, messages) = mpsc::channel();
    let cancel = printer.cancel.clone();
    let token = cancel.clone();
    let started = signals::forward(to_main.clone(), || Message::Stop)
        .and_then(|()| {
            let (to_printer, news) = mpsc::channel();
            spawn("print", move || {
                let _ = to_main.send(Message::Done(printer.print(&news)));
            })?;
            spawn("execute", move || {
                let mut tell = |event: Event| {
                    // A printer that has gone has cancelled the execution.
                    let _ = to_printer.send(News::Event(event));
                };
                let result = work(&mut tell, &token);
                let _ = to_printer.send(News::End(Box::new(result)));
            })
        })
        .map_err(|error| Failure::Ours(format!("cannot start a thread: {error}")));
    started?;
    wait(&messages, &cancel)
}

/// The first signal asks the program to end and waits for the report. The second leaves at once:
/// nothing of the sandbox outlives this process.
fn wait(messages: &Receiver<Message>, cancel: &CancelToken) -> Result<u8, Failure> {
    loop {
        match messages.recv() {
            Ok(Message::Stop) if cancel.is_cancelled() => return Ok(CANCELLED),
            Ok(Message::Stop) => cancel.cancel(),
            Ok(Message::Done(result)) => return result,
            Err(_) => return Err(Failure::Ours("the execution ended without a word".into())),
        }
    }
}

fn request(args: &RunArgs, runtimes: &Runtimes) -> Result<Prepared, Failure> {
    let of_file = |name: &str, line: &str| {
        let found = runtimes.language_for_file(name, line);
        found.map(ToOwned::to_owned)
    };
    let named = |name: &str| {
        let choice: LanguageChoice = name.parse().map_err(|error| Failure::usage(&error))?;
        match named(args, runtimes, &choice) {
            // What is not here may be there.
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
        let note = "the server sees one program: lines in its messages are not those of your code";
        prepared.notes.push(note.to_owned());
    }
    Ok(prepared)
}

/// The proper name of a language.
fn named(args: &RunArgs, runtimes: &Runtimes, choice: &LanguageChoice) -> Result<String, Failure> {
    let name = runtimes.proper_name(choice).map_err(|error| Failure::usage(&error))?;
    if args.image.is_none() && runtimes.image_of(name).is_none() {
        // Before anything is read or started for it.
        runtimes.resolve(choice).map_err(|error| Failure::usage(&error))?;
    }
    Ok(name.to_owned())
}

fn start(args: &RunArgs, runtimes: Arc<Runtimes>) -> Result<Sandbox, Failure> {
    if args.network == NetworkPolicy::Allowlist {
        allow_open_files();
    }
    let mut builder = Sandbox::builder().runtimes(runtimes).for_one_execution();
    builder = match args.isolation {
        IsolationChoice::This(isolation) => builder.isolation(isolation),
        IsolationChoice::Auto => builder
            .isolation_order(args.order.order().iter().copied())
            .isolation_may_lack(args.allow_missing.iter().copied()),
    };
    builder = args.order.set_up(builder);
    if args.no_cache {
        builder = builder.without_compile_cache();
    }
    builder.build().map_err(|error| match error {
        // It says what to install, or what to use instead.
        StartError::Backend(BackendError::Refused(reason)) => Failure::Usage(reason),
        error => Failure::ours(&error),
    })
}

/// Each connection through an allow-list takes two descriptors, and a shell lets a process have few unless it asks for more.
fn allow_open_files() {
    let limit = getrlimit(Resource::Nofile);
    // Without it there are fewer connections at once.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new().name(name.into()).spawn(work)?;
    Ok(())
}

fn execute(
    sandbox: &Sandbox,
    request: Request,
    tell: &mut dyn FnMut(Event),
    cancel: &CancelToken,
) -> Result<Report, Failure> {
    let mut tell = |event: &Event| tell(event.clone());
    sandbox.execute_with(request, &mut tell, cancel).map_err(not_executed)
}

/// Whose failure it is that there is no report.
pub(crate) fn not_executed(error: ExecuteError) -> Failure {
    match error {
        ExecuteError::Thread(_) | ExecuteError::ImageBackend(_) => Failure::ours(&error),
        ExecuteError::Image(image) if image.is_ours() => Failure::ours(&image),
        ExecuteError::Packages(packages) if packages.is_internal() => Failure::ours(&packages),
        _ => Failure::usage(&error),
    }
}

/// Prints what happens, and brings the files home.
struct Printer {
    presenter: Box<dyn Presenter>,
    directory: Option<OutputDirectory>,
    cancel: CancelToken,
}

impl Printer {
    fn print(mut self, news: &Receiver<News>) -> Result<u8, Failure> {
        let mut printed = Ok(());
        for news in news {
            match news {
                News::Event(event) if printed.is_ok() => {
                    printed = self.presenter.event(&event);
                    if printed.is_err() {
                        // Nobody will see the rest: the program need not go on. What it had started
                        // is still taken down in order, so its end is waited for.
                        self.cancel.cancel();
                    }
                }
                News::Event(_) => {}
                News::End(result) => {
                    printed.map_err(|error| Failure::printing(&error))?;
                    let report = (*result)?;
                    return self.end(&report);
                }
            }
        }
        Err(Failure::Ours("the execution ended without a report".into()))
    }

    fn end(mut self, report: &Report) -> Result<u8, Failure> {
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
        sender.send(Message::Stop).unwrap();
        sender.send(Message::Done(Ok(130))).unwrap();
        assert_eq!(wait(&messages, &cancel).unwrap(), 130);
        assert!(cancel.is_cancelled());

        sender.send(Message::Stop).unwrap();
        assert_eq!(wait(&messages, &cancel).unwrap(), CANCELLED);
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
            panic!("there is nobody to report to")
        }
    }

    #[test]
    fn a_reader_that_has_gone_cancels_the_execution_quietly() {
        let cancel = CancelToken::new();
        let printer =
            Printer { presenter: Box::new(Closed), directory: None, cancel: cancel.clone() };
        let (sender, news) = mpsc::channel();
        for _ in 0..2 {
            let kind = sandbox::EventKind::Queued;
            sender.send(News::Event(Event { seq: 1, kind })).unwrap();
        }
        let report = crate::output::samples::report();
        sender.send(News::End(Box::new(Ok(report)))).unwrap();
        let failure = printer.print(&news).unwrap_err();
        assert!(cancel.is_cancelled());
        assert!(failure.message().is_none());
    }
}
