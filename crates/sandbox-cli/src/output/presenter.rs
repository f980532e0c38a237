use std::io;

use sandbox::{Event, Report};

/// Prints one execution in one format.
pub(crate) trait Presenter: Send {
    /// Prints a note about the request, before it runs.
    fn note(&mut self, text: &str) -> io::Result<()>;
    /// Prints an event.
    fn event(&mut self, event: &Event) -> io::Result<()>;
    /// Prints the report, after the last event.
    fn report(&mut self, report: &Report) -> io::Result<()>;
}
