//! Prints executions as text, JSON or NDJSON, and what other commands need to print: colours, tables, units.

mod json;
mod ndjson;
mod paint;
mod summary;
mod table;
mod text;
pub(crate) mod units;

#[cfg(test)]
mod control_characters;
#[cfg(test)]
pub(crate) mod fixtures;

use std::io::{self, IsTerminal};

use sandbox::{Event, Report};

use crate::args::Format;

pub(crate) use paint::Paint;
pub(crate) use table::{new_table, terminal_width};

use json::Json;
use ndjson::Ndjson;
use text::Text;

/// Prints one execution in one format.
pub(crate) trait Presenter: Send {
    /// Prints a note about the request, before it runs.
    fn note(&mut self, text: &str) -> io::Result<()>;
    /// Prints an event.
    fn event(&mut self, event: &Event) -> io::Result<()>;
    /// Prints the report, after the last event.
    fn report(&mut self, report: &Report) -> io::Result<()>;
}

/// The presenter of a format, on the standard streams of this process.
pub(crate) fn presenter(format: Format, quiet: bool) -> Box<dyn Presenter> {
    let (stdout, stderr) = (io::stdout(), io::stderr());
    let on_terminal = stdout.is_terminal();
    match format {
        Format::Text => {
            let paint = Paint::for_stream(&stderr);
            Box::new(Text::new(stdout, stderr, paint, quiet, on_terminal))
        }
        Format::Json => Box::new(Json::new(stdout, on_terminal)),
        Format::Ndjson => Box::new(Ndjson::new(stdout)),
    }
}
