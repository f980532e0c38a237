use std::io::{self, Write};

use sandbox::{Event, Report};

use super::Presenter;
use crate::stdout::escape_controls;

/// Prints only the report: indented on a terminal, on one line otherwise.
pub(super) struct Json<O> {
    stdout: O,
    pretty: bool,
}

impl<O: Write> Json<O> {
    pub(super) fn new(stdout: O, pretty: bool) -> Self {
        Self { stdout, pretty }
    }
}

impl<O: Write + Send> Presenter for Json<O> {
    fn note(&mut self, _: &str) -> io::Result<()> {
        Ok(())
    }

    fn event(&mut self, _: &Event) -> io::Result<()> {
        Ok(())
    }

    fn report(&mut self, report: &Report) -> io::Result<()> {
        let text = if self.pretty {
            serde_json::to_string_pretty(report)
        } else {
            serde_json::to_string(report)
        };
        writeln!(self.stdout, "{}", escape_controls(text?))?;
        self.stdout.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixtures;
    use super::*;

    #[test]
    fn json_is_one_line_unless_pretty() {
        for (pretty, usage_error_line) in [(false, true), (true, false)] {
            let mut stdout = Vec::new();
            let mut json = Json::new(&mut stdout, pretty);
            json.report(&fixtures::report()).unwrap();
            let value: serde_json::Value = serde_json::from_slice(&stdout).unwrap();
            assert_eq!(value["status"], "completed");
            let text = String::from_utf8(stdout).unwrap();
            assert_eq!(text.lines().count() == 1, usage_error_line, "{text}");
        }
    }
}
