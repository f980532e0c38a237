//! The log: to standard error, for people or as JSON.

mod late;

use std::io::{self, IsTerminal as _};

use anyhow::{Context as _, Result};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::config::{Config, LogFormat};
pub(crate) use late::LastLines;
use late::Late;

/// From now on what is traced is written, until what it returns is dropped. Once in a process.
pub(crate) fn start(config: &Config) -> Result<LastLines> {
    let filter = EnvFilter::builder().parse(&config.log_filter);
    let filter = filter.context("the log filter cannot be used")?;
    let registry = tracing_subscriber::registry().with(filter);
    let (late, last_lines) = Late::start(io::stderr()).context("the log cannot be started")?;
    let lines = fmt::layer().with_writer(late);
    let started = match config.log {
        LogFormat::Pretty => {
            registry.with(lines.with_target(false).with_ansi(io::stderr().is_terminal())).try_init()
        }
        LogFormat::Json => registry.with(lines.json().flatten_event(true)).try_init(),
    };
    started.context("the log cannot be started")?;
    Ok(last_lines)
}
