use std::io::{self, Write};

use sandbox::{Event, EventKind, Report};

use super::Presenter;
use crate::stdout::escape_controls;

/// Prints one event per line and flushes each. The last event is the report.
pub(super) struct Ndjson<O> {
    stdout: O,
    last_seq: u64,
    reported: bool,
}

impl<O: Write> Ndjson<O> {
    pub(super) fn new(stdout: O) -> Self {
        Self { stdout, last_seq: 0, reported: false }
    }
}

impl<O: Write + Send> Presenter for Ndjson<O> {
    fn note(&mut self, _: &str) -> io::Result<()> {
        Ok(())
    }

    fn event(&mut self, event: &Event) -> io::Result<()> {
        self.last_seq = event.seq;
        self.reported |= matches!(event.kind, EventKind::Report(_));
        let line = escape_controls(serde_json::to_string(event)?) + "\n";
        self.stdout.write_all(line.as_bytes())?;
        self.stdout.flush()
    }

    /// Prints the report as an event, unless it already came as one.
    fn report(&mut self, report: &Report) -> io::Result<()> {
        if self.reported {
            return Ok(());
        }
        let kind = EventKind::Report(Box::new(report.clone()));
        let seq = self.last_seq + 1;
        self.event(&Event { seq, kind })
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixtures;
    use super::*;

    #[test]
    fn each_event_is_a_line_and_the_report_is_printed_last_and_once() {
        for reported in [false, true] {
            let mut stdout = Vec::new();
            let mut ndjson = Ndjson::new(&mut stdout);
            let report = fixtures::report();
            let kind = EventKind::Queued;
            ndjson.event(&Event { seq: 1, kind }).unwrap();
            if reported {
                let kind = EventKind::Report(Box::new(report.clone()));
                ndjson.event(&Event { seq: 2, kind }).unwrap();
            }
            ndjson.report(&report).unwrap();
            let text = String::from_utf8(stdout).unwrap();
            let types: Vec<_> = text
                .lines()
                .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
                .map(|value| (value["seq"].as_u64(), value["type"].to_string()))
                .collect();
            assert_eq!(types, [(Some(1), "\"queued\"".into()), (Some(2), "\"report\"".into())]);
        }
    }
}
