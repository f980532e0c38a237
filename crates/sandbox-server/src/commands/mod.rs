//! The command line: what can be typed, and what each word does.

mod args;
mod audit;
mod config;
mod keys;

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::Parser as _;

use crate::config::{ConfigError, Sources, Surroundings};
use crate::serve;
use args::{Cli, Command};

/// The command line was wrong, or the configuration.
const USAGE: u8 = 2;
const FAILURE: u8 = 1;

/// Does what the command line says. The only place where an exit code is made.
pub fn run() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are answers and go to standard output; where nobody reads it there is
            // nobody to tell either.
            let _ = error.print();
            return if error.use_stderr() { USAGE.into() } else { ExitCode::SUCCESS };
        }
    };
    match carry_out(&cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // There is nowhere left to say that this failed too.
            let error_line = escape_controls(&format!("sandboxd: {error:#}"));
            let _ = writeln!(io::stderr().lock(), "{error_line}");
            if error.is::<ConfigError>() { USAGE.into() } else { FAILURE.into() }
        }
    }
}

fn carry_out(cli: &Cli) -> Result<()> {
    let surroundings = Surroundings::look();
    let sources = Sources::gather(cli.settings.layer(), cli.settings.config(), &surroundings)?;
    let config = sources.config()?;
    // Half of the cores for HTTP, the rest for programs and their walls, which have threads of their own.
    // With more, each step of a request would wake another core to look whether there is work for it.
    let threads = (surroundings.cores / 2).max(1);
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build();
    let runtime = runtime.context("the server's threads cannot be started")?;
    match &cli.command {
        None => runtime.block_on(serve::serve(config, sources.file.as_deref())),
        Some(Command::Config(args::ConfigCommand::Check)) => {
            serve::check_tls(&config)?;
            print(&config::check(&sources))
        }
        Some(Command::Audit { limit, json }) => {
            print(&runtime.block_on(audit::carry_out(*limit, *json, &config))?)
        }
        Some(Command::Keys(command)) => {
            print(&runtime.block_on(keys::carry_out(command, &config))?)
        }
    }
}

fn print(text: &str) -> Result<()> {
    match io::stdout().lock().write_all(escape_controls(text).as_bytes()) {
        // Whoever has read enough has no quarrel with us.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(error).context("cannot print the result")
        }
        _ => Ok(()),
    }
}

/// Write control characters as `\u00XX`, line feeds excepted: names in a text may be a client's, and a terminal obeys
/// DEL and C1 (U+0080 to U+009F), which JSON does not escape.
fn escape_controls(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        if letter.is_control() && letter != '\n' {
            // Writing into a text cannot fail.
            let _ = write!(escaped, "\\u{:04x}", u32::from(letter));
        } else {
            escaped.push(letter);
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_control_character_is_printed() {
        let text: String = (0..=0xff).filter_map(char::from_u32).collect();
        let escaped = escape_controls(&text);
        assert!(escaped.chars().all(|letter| letter == '\n' || !letter.is_control()));
        assert!(escaped.contains("\\u001b") && escaped.contains("\\u007f"), "{escaped}");
        let json = escape_controls(&serde_json::to_string(&text).unwrap());
        assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text);
        assert_eq!(escape_controls("ü\n"), "ü\n");
    }
}
