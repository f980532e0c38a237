//! `sandbox-run completions`: print a completion script for a shell.

use clap::CommandFactory;
use clap_complete::Shell;

use crate::args::Cli;
use crate::errors::Failure;
use crate::stdout;

/// Generates the script in memory first, because the generator panics when a write fails.
pub(crate) fn run(shell: Shell) -> Result<u8, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "sandbox-run", &mut script);
    stdout::print(&script)?;
    Ok(0)
}
