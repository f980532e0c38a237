//! `sandbox-run`: the command line of the `sandbox` library.

mod args;
mod cache;
mod completions;
mod doctor;
mod env;
mod errors;
mod images;
mod input;
mod output;
mod output_dir;
mod remote;
mod request;
mod run;
mod runtimes;
mod seccomp;
mod signals;
mod stdout;
mod warm;
mod workspace;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::error::ErrorKind;

use args::{Cli, Command, move_server_after_command};
use errors::Failure;

/// The only place that exits with a code.
fn main() -> ExitCode {
    let result = if warm::is_helper(std::env::args_os()) {
        warm::serve()
    } else {
        match Cli::parse_line(move_server_after_command(std::env::args_os())) {
            Ok(cli) => dispatch(cli.into_command()),
            Err(error) => handle_clap_error(&error),
        }
    };
    match result {
        Ok(code) => code.into(),
        Err(failure) => {
            if let Some(message) = failure.message() {
                // If standard error is closed, there is nowhere to report that.
                let _ = writeln!(io::stderr().lock(), "{message}");
            }
            failure.exit_code().into()
        }
    }
}

fn dispatch(command: Command) -> Result<u8, Failure> {
    match command {
        Command::Run(args) => run::run(&args),
        Command::Runtimes(args) => runtimes::run(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Env(args) => env::run(&args),
        Command::Workspace(args) => workspace::run(&args),
        Command::Images(args) => images::run(&args),
        Command::Cache(args) => cache::run(&args),
        Command::Warm(args) => warm::run(&args),
        Command::Seccomp(args) => seccomp::run(&args),
        Command::Completions(args) => completions::run(args.shell),
    }
}

/// Prints help and version; every other error becomes one line.
fn handle_clap_error(error: &clap::Error) -> Result<u8, Failure> {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            error.print().map_err(|error| Failure::printing(&error))?;
            Ok(0)
        }
        _ => Err(Failure::Usage(args::usage_error_line(error))),
    }
}
