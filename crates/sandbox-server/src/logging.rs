//! The log: to standard error, as text or as JSON.

mod buffered;

use std::io::{self, IsTerminal as _};

use anyhow::{Context as _, Result};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::config::{Config, LogFormat};
use buffered::BufferedWriter;
pub(crate) use buffered::FlushGuard;

/// Installs the global subscriber. Only once in a process. Dropping the guard writes the last lines.
pub(crate) fn start(config: &Config) -> Result<FlushGuard> {
    let filter = EnvFilter::builder().parse(&config.log_filter);
    let filter = filter.context("invalid log filter")?;
    let registry = tracing_subscriber::registry().with(filter);
    let (writer, guard) = BufferedWriter::start(io::stderr()).context("failed to start the log")?;
    let lines = fmt::layer().with_writer(writer);
    let started = match config.log {
        LogFormat::Pretty => {
            registry.with(lines.with_target(false).with_ansi(io::stderr().is_terminal())).try_init()
        }
        LogFormat::Json => registry.with(lines.json().flatten_event(true)).try_init(),
    };
    started.context("failed to start the log")?;
    Ok(guard)
}
