//! The command line of `sandboxd`.

mod args;
mod audit;
mod config;
mod keys;

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::Parser as _;

use crate::config::{ConfigError, HostInfo, LoadedSettings};
use crate::serve;
use args::{Cli, Command};

/// Exit code after an error in the command line or the configuration.
const USAGE: u8 = 2;
/// Exit code after any other error.
const FAILURE: u8 = 1;

/// Runs the command line, and returns the exit code.
pub fn run() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Prints help and version to standard output, errors to standard error.
            let _ = error.print();
            return if error.use_stderr() { USAGE.into() } else { ExitCode::SUCCESS };
        }
    };
    match run_command(&cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // There is no other place to report that this failed.
            let error_line = escape_controls(&format!("sandboxd: {error:#}"));
            let _ = writeln!(io::stderr().lock(), "{error_line}");
            if error.is::<ConfigError>() { USAGE.into() } else { FAILURE.into() }
        }
    }
}

fn run_command(cli: &Cli) -> Result<()> {
    let host = HostInfo::detect();
    let settings = LoadedSettings::load(cli.settings.layer(), cli.settings.config(), &host)?;
    let config = settings.config()?;
    // Half of the cores: sandboxes have threads of their own. With more threads, the work stealing of tokio wakes
    // an idle core at each step of a request.
    let threads = (host.cores / 2).max(1);
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build();
    let runtime = runtime.context("failed to start the server's threads")?;
    match &cli.command {
        None => runtime.block_on(serve::serve(config, settings.file.as_deref())),
        Some(Command::Config(args::ConfigCommand::Check)) => {
            serve::check_tls(&config)?;
            print(&config::check(&settings))
        }
        Some(Command::Audit { limit, json }) => {
            print(&runtime.block_on(audit::run(*limit, *json, &config))?)
        }
        Some(Command::Keys(command)) => print(&runtime.block_on(keys::run(command, &config))?),
    }
}

fn print(text: &str) -> Result<()> {
    match io::stdout().lock().write_all(escape_controls(text).as_bytes()) {
        // The reader may close the pipe early, as `head` does.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(error).context("failed to write to standard output")
        }
        _ => Ok(()),
    }
}

/// Escapes control characters except line feeds as `\u00XX`. Clients choose names in the text, and a terminal interprets
/// DEL and C1 (U+0080 to U+009F), which JSON does not escape.
fn escape_controls(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        if letter.is_control() && letter != '\n' {
            // Writing to a string cannot fail.
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
    fn control_characters_are_escaped() {
        let text: String = (0..=0xff).filter_map(char::from_u32).collect();
        let escaped = escape_controls(&text);
        assert!(escaped.chars().all(|letter| letter == '\n' || !letter.is_control()));
        assert!(escaped.contains("\\u001b") && escaped.contains("\\u007f"), "{escaped}");
        let json = escape_controls(&serde_json::to_string(&text).unwrap());
        assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text);
        assert_eq!(escape_controls("ü\n"), "ü\n");
    }
}
