//! `sandbox-run`: the command line of the `sandbox` library.

mod answer;
mod args;
mod cache;
mod completions;
mod doctor;
mod env;
mod errors;
mod images;
mod input;
mod output;
mod remote;
mod request;
mod run;
mod runtimes;
mod seccomp;
mod signals;
mod warm;
mod workspace;
mod write_files;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::error::ErrorKind;

use args::{Cli, Command, server_behind_command};
use errors::Failure;

/// The only place where an exit code is made.
fn main() -> ExitCode {
    let result = if warm::is_helper(std::env::args_os()) {
        warm::serve()
    } else {
        match Cli::read(server_behind_command(std::env::args_os())) {
            Ok(cli) => carry_out(cli.into_command()),
            Err(error) => explain(&error),
        }
    };
    match result {
        Ok(code) => code.into(),
        Err(failure) => {
            if let Some(message) = failure.message() {
                // There is nowhere left to say that this failed too.
                let _ = writeln!(io::stderr().lock(), "{message}");
            }
            failure.exit_code().into()
        }
    }
}

fn carry_out(command: Command) -> Result<u8, Failure> {
    match command {
        Command::Run(args) => run::run(&args),
        Command::Runtimes(args) => runtimes::list(&args),
        Command::Doctor(args) => doctor::examine(&args),
        Command::Env(args) => env::carry_out(&args),
        Command::Workspace(args) => workspace::carry_out(&args),
        Command::Images(args) => images::carry_out(&args),
        Command::Cache(args) => cache::carry_out(&args),
        Command::Warm(args) => warm::carry_out(&args),
        Command::Seccomp(args) => seccomp::print(&args),
        Command::Completions(args) => completions::print(args.shell),
    }
}

/// Help and version are answers; everything else is a mistake to be told in one line.
fn explain(error: &clap::Error) -> Result<u8, Failure> {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            error.print().map_err(|error| Failure::printing(&error))?;
            Ok(0)
        }
        _ => Err(Failure::Usage(args::one_line(error))),
    }
}
