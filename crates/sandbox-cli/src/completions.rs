use std::io::{self, Write};

use clap::CommandFactory;
use clap_complete::Shell;

use crate::args::Cli;
use crate::errors::Failure;

/// Prints the completion script. It is made in memory first, because the generator cannot report
/// that nobody reads it.
pub(crate) fn print(shell: Shell) -> Result<u8, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "sandbox-run", &mut script);
    let printed = io::stdout().lock().write_all(&script);
    printed.map_err(|error| Failure::printing(&error))?;
    Ok(0)
}
