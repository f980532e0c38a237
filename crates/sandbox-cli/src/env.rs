//! `sandbox-run env`: build, list, show and remove environments, which are named sets of packages.

use std::io::{self, IsTerminal, Write};
use std::sync::mpsc;
use std::thread;

use sandbox::{CancelToken, Environment, Environments, PackageError, PackageSpec, Sandbox};

use crate::args::{BuildArgs, EnvAction, EnvArgs};
use crate::errors::{EXIT_CANCELLED, Failure, printable};
use crate::output::{new_table, terminal_width};
use crate::signals;
use crate::stdout::{print, to_json};

pub(crate) fn run(args: &EnvArgs) -> Result<u8, Failure> {
    match &args.action {
        EnvAction::Build(args) => return build(args),
        EnvAction::List { json } => {
            let environments = Environments::list().map_err(|error| failure(&error))?;
            print(&if *json { to_json(&environments)? } else { table(&environments) })?;
        }
        EnvAction::Show { name } => {
            print(&to_json(&Environments::find(name).map_err(|error| failure(&error))?)?)?;
        }
        EnvAction::Remove { name } => {
            Environments::remove(name).map_err(|error| failure(&error))?;
        }
    }
    Ok(0)
}

fn build(args: &BuildArgs) -> Result<u8, Failure> {
    // Before any other thread exists, because starting the sandbox forks.
    let sandbox = Sandbox::builder().for_one_execution().build();
    let sandbox = sandbox.map_err(|error| Failure::internal(&error))?;
    let cancel = CancelToken::new();
    cancel_on_signal(&cancel)?;
    let packages: Vec<PackageSpec> =
        args.packages.iter().flat_map(|list| list.0.iter().cloned()).collect();
    let mut progress = Progress::new(!args.quiet && !args.json);
    progress.begin("querying the package index");
    let built = sandbox.environments().build(
        args.name.clone(),
        &args.lang,
        &packages,
        &mut |text| progress.show(text),
        &cancel,
    );
    progress.clear();
    let environment = match built {
        Err(PackageError::Cancelled) => return Ok(EXIT_CANCELLED),
        built => built.map_err(|error| failure(&error))?,
    };
    if args.json {
        print(&to_json(&environment)?)?;
    } else if !args.quiet {
        let (lock, name) = (&environment.lock, &environment.name);
        let line = format!("{name}: {} {} with {}", lock.language, lock.version, lock.summary());
        print(&(printable(&line) + "\n"))?;
    }
    Ok(0)
}

/// Cancels the build on a stop signal; its sandbox is torn down in order.
fn cancel_on_signal(cancel: &CancelToken) -> Result<(), Failure> {
    let (sender, signals) = mpsc::channel();
    let token = cancel.clone();
    signals::forward(sender, || ())
        .and_then(|()| {
            let wait = move || signals.into_iter().for_each(|()| token.cancel());
            thread::Builder::new().name("cancel".into()).spawn(wait)
        })
        .map(drop)
        .map_err(|error| Failure::thread(&error))
}

/// Prints progress: on one line that is overwritten on a terminal, else line by line.
struct Progress {
    shown: bool,
    usage_error_line: bool,
}

impl Progress {
    fn new(shown: bool) -> Self {
        Self { shown, usage_error_line: io::stderr().is_terminal() }
    }

    fn show(&mut self, text: &str) {
        if !self.shown {
            return;
        }
        let text = printable(text);
        // A failure to print progress must not hide the result.
        let _ = if self.usage_error_line {
            let width = terminal_width().map_or(80, usize::from).saturating_sub(1);
            let text: String = text.chars().take(width).collect();
            write!(io::stderr(), "\r\x1b[K{text}")
        } else {
            writeln!(io::stderr(), "sandbox-run: {text}")
        };
    }

    /// Prints the first step, on a terminal only.
    fn begin(&mut self, text: &str) {
        if self.usage_error_line {
            self.show(text);
        }
    }

    fn clear(&mut self) {
        if self.shown && self.usage_error_line {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

fn table(environments: &[Environment]) -> String {
    if environments.is_empty() {
        return "no environments: create one with 'sandbox-run env build'\n".to_owned();
    }
    let mut table = new_table(["ENVIRONMENT", "LANGUAGE", "BUILT", "PACKAGES"], terminal_width());
    for Environment { name, created_at, lock } in environments {
        table.add_row([
            name.to_string(),
            printable(&format!("{} {}", lock.language, lock.version)),
            created_at.format("%FT%TZ").to_string(),
            printable(&lock.summary()),
        ]);
    }
    table.trim_fmt() + "\n"
}

fn failure(error: &PackageError) -> Failure {
    if error.is_internal() { Failure::internal(error) } else { Failure::usage(error) }
}
