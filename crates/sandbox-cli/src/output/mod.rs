//! Ways to show an execution.

pub(crate) mod figures;
mod json;
mod ndjson;
mod paint;
mod summary;
mod text;

#[cfg(test)]
mod hostile;
#[cfg(test)]
pub(crate) mod samples;

use std::io::{self, IsTerminal};

use sandbox::{Event, Report};

use crate::args::Format;

pub(crate) use paint::Paint;

use json::Json;
use ndjson::Ndjson;
use text::Text;

/// Shows what happens and what came of it.
pub(crate) trait Presenter: Send {
    /// Something worth knowing about the request, before it runs.
    fn note(&mut self, text: &str) -> io::Result<()>;
    /// Something happened.
    fn event(&mut self, event: &Event) -> io::Result<()>;
    /// It is over.
    fn report(&mut self, report: &Report) -> io::Result<()>;
}

/// The presenter for a format, on our own standard streams.
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

/// How wide the terminal is; nothing in a pipe, where lines may be as long as they like.
pub(crate) fn terminal_width() -> Option<u16> {
    let stdout = io::stdout();
    let size = rustix::termios::tcgetwinsize(&stdout).ok()?;
    (size.ws_col > 0).then_some(size.ws_col)
}
