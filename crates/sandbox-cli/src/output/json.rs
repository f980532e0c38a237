use std::io::{self, Write};

use sandbox::{Event, Report};

use super::Presenter;
use crate::answer::escape_controls;

/// The report and nothing else: on many lines for a person, on one for a program.
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
    use super::super::samples;
    use super::*;

    #[test]
    fn a_program_gets_one_line_and_a_person_many() {
        for (pretty, one_line) in [(false, true), (true, false)] {
            let mut stdout = Vec::new();
            let mut json = Json::new(&mut stdout, pretty);
            json.report(&samples::report()).unwrap();
            let value: serde_json::Value = serde_json::from_slice(&stdout).unwrap();
            assert_eq!(value["status"], "completed");
            let text = String::from_utf8(stdout).unwrap();
            assert_eq!(text.lines().count() == 1, one_line, "{text}");
        }
    }
}
