//! `sandbox-run env`: packages under a name.

use std::io::{self, IsTerminal, Write};
use std::sync::mpsc;
use std::thread;

use comfy_table::{ContentArrangement, Table};
use sandbox::{CancelToken, Environment, Environments, PackageError, PackageSpec, Sandbox};

use crate::answer::{as_json, print};
use crate::args::{BuildArgs, EnvAction, EnvArgs};
use crate::errors::{Failure, printable};
use crate::output::terminal_width;
use crate::signals;

/// What a shell gives for SIGINT.
const CANCELLED: u8 = 130;

pub(crate) fn carry_out(args: &EnvArgs) -> Result<u8, Failure> {
    match &args.action {
        EnvAction::Build(args) => return build(args),
        EnvAction::List { json } => {
            let environments = Environments::list().map_err(|error| failure(&error))?;
            print(&if *json { as_json(&environments)? } else { table(&environments) })?;
        }
        EnvAction::Show { name } => {
            print(&as_json(&Environments::find(name).map_err(|error| failure(&error))?)?)?;
        }
        EnvAction::Remove { name } => {
            Environments::remove(name).map_err(|error| failure(&error))?;
        }
    }
    Ok(0)
}

fn build(args: &BuildArgs) -> Result<u8, Failure> {
    // Before any other thread exists: starting the sandbox starts processes.
    let sandbox = Sandbox::builder().for_one_execution().build();
    let sandbox = sandbox.map_err(|error| Failure::ours(&error))?;
    let cancel = CancelToken::new();
    cancel_on_signal(&cancel)?;
    let packages: Vec<PackageSpec> =
        args.packages.iter().flat_map(|list| list.0.iter().cloned()).collect();
    let mut progress = Progress::new(!args.quiet && !args.json);
    progress.begin("asking the package index");
    let built = sandbox.environments().build(
        args.name.clone(),
        &args.lang,
        &packages,
        &mut |text| progress.show(text),
        &cancel,
    );
    progress.clear();
    let environment = match built {
        Err(PackageError::Cancelled) => return Ok(CANCELLED),
        built => built.map_err(|error| failure(&error))?,
    };
    if args.json {
        print(&as_json(&environment)?)?;
    } else if !args.quiet {
        let (lock, name) = (&environment.lock, &environment.name);
        let told = format!("{name}: {} {} with {}", lock.language, lock.version, lock.summary());
        print(&(printable(&told) + "\n"))?;
    }
    Ok(0)
}

/// Ends the build when a signal asks for it; the sandbox it is in is taken down in order.
fn cancel_on_signal(cancel: &CancelToken) -> Result<(), Failure> {
    let (sender, signals) = mpsc::channel();
    let token = cancel.clone();
    signals::forward(sender, || ())
        .and_then(|()| {
            let wait = move || signals.into_iter().for_each(|()| token.cancel());
            thread::Builder::new().name("cancel".into()).spawn(wait)
        })
        .map(drop)
        .map_err(|error| Failure::Ours(format!("cannot start a thread: {error}")))
}

/// Says what is being done: in one line that changes on a terminal, else line by line.
struct Progress {
    shown: bool,
    one_line: bool,
}

impl Progress {
    fn new(shown: bool) -> Self {
        Self { shown, one_line: io::stderr().is_terminal() }
    }

    fn show(&mut self, text: &str) {
        if !self.shown {
            return;
        }
        let text = printable(text);
        // Progress is a courtesy: where it cannot be shown, the result still can.
        let _ = if self.one_line {
            let width = terminal_width().map_or(80, usize::from).saturating_sub(1);
            let text: String = text.chars().take(width).collect();
            write!(io::stderr(), "\r\x1b[K{text}")
        } else {
            writeln!(io::stderr(), "sandbox-run: {text}")
        };
    }

    /// Something to look at until there is news, for somebody who looks.
    fn begin(&mut self, text: &str) {
        if self.one_line {
            self.show(text);
        }
    }

    fn clear(&mut self) {
        if self.shown && self.one_line {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

fn table(environments: &[Environment]) -> String {
    if environments.is_empty() {
        return "there are no environments: 'sandbox-run env build' makes one\n".to_owned();
    }
    let mut table = Table::new();
    table.load_style(comfy_table::presets::NOTHING);
    if let Some(width) = terminal_width() {
        table.set_content_arrangement(ContentArrangement::Dynamic);
        table.set_width(width);
    }
    table.set_header(["ENVIRONMENT", "LANGUAGE", "BUILT", "PACKAGES"]);
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
    if error.is_internal() { Failure::ours(error) } else { Failure::usage(error) }
}
