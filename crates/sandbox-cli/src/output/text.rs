use std::io::{self, Write};

use sandbox::{Event, EventKind, Report, Stage, Status, StreamKind};

use super::Presenter;
use super::paint::Paint;
use super::summary::summary;
use crate::errors::printable;

/// Passes on the program's output byte for byte as it is produced, then prints a summary to standard error.
pub(super) struct Text<O, E> {
    stdout: O,
    stderr: E,
    paint: Paint,
    quiet: bool,
    stdout_is_terminal: bool,
    stage: Stage,
    /// Whether the last output that is visible on the terminal did not end with a newline.
    within_line: bool,
}

impl<O: Write, E: Write> Text<O, E> {
    pub(super) fn new(
        stdout: O,
        stderr: E,
        paint: Paint,
        quiet: bool,
        stdout_is_terminal: bool,
    ) -> Self {
        Self {
            stdout,
            stderr,
            paint,
            quiet,
            stdout_is_terminal,
            stage: Stage::Run,
            within_line: false,
        }
    }

    fn output(&mut self, stream: StreamKind, bytes: &[u8]) -> io::Result<()> {
        let within_line = bytes.last().is_some_and(|byte| *byte != b'\n');
        // The output of a compiler goes to standard error: it is not the program's output.
        if stream == StreamKind::Stdout && self.stage == Stage::Run {
            if self.stdout_is_terminal {
                self.within_line = within_line;
            }
            self.stdout.write_all(bytes)?;
            self.stdout.flush()
        } else {
            self.within_line = within_line;
            self.stderr.write_all(bytes)?;
            self.stderr.flush()
        }
    }
}

impl<O: Write + Send, E: Write + Send> Presenter for Text<O, E> {
    fn note(&mut self, text: &str) -> io::Result<()> {
        if self.quiet {
            return Ok(());
        }
        let line = self.paint.dim(&format!("sandbox-run: {}", printable(text)));
        writeln!(self.stderr, "{line}")
    }

    fn event(&mut self, event: &Event) -> io::Result<()> {
        match &event.kind {
            EventKind::Stage(stage) => {
                self.stage = *stage;
                Ok(())
            }
            EventKind::Output(stream, bytes) => self.output(*stream, bytes),
            EventKind::Progress(message) => self.note(message),
            _ => Ok(()),
        }
    }

    fn report(&mut self, report: &Report) -> io::Result<()> {
        // --quiet does not hide internal errors.
        if self.quiet && report.status != Status::Error {
            return Ok(());
        }
        if self.within_line {
            self.stderr.write_all(b"\n")?;
        }
        // In one write, so that no other output interleaves.
        let text = summary(report, self.paint);
        self.stderr.write_all(text.as_bytes())?;
        self.stderr.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixtures;
    use super::*;

    fn shown(quiet: bool, terminal: bool, kinds: Vec<EventKind>) -> (Vec<u8>, String) {
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        let mut text = Text::new(&mut stdout, &mut stderr, Paint::none(), quiet, terminal);
        for (seq, kind) in (1..).zip(kinds) {
            text.event(&Event { seq, kind }).unwrap();
        }
        text.report(&fixtures::report()).unwrap();
        (stdout, String::from_utf8(stderr).unwrap())
    }

    #[test]
    fn progress_is_printed_unless_quiet() {
        let progress = || vec![EventKind::Progress("preparing toy".into())];
        assert!(shown(false, false, progress()).1.starts_with("sandbox-run: preparing toy\n"));
        assert_eq!(shown(true, false, progress()).1, "");
    }

    fn out(bytes: &[u8]) -> EventKind {
        EventKind::Output(StreamKind::Stdout, bytes.to_vec())
    }

    fn err(text: &str) -> EventKind {
        EventKind::Output(StreamKind::Stderr, text.into())
    }

    #[test]
    fn output_is_passed_on_byte_for_byte_and_the_summary_follows() {
        let events = vec![EventKind::Queued, out(b"\xff\x1b[1m"), err("oops\n")];
        let (stdout, stderr) = shown(false, false, events);
        assert_eq!(stdout, b"\xff\x1b[1m");
        assert!(stderr.starts_with("oops\n✓ completed"), "{stderr}");
    }

    #[test]
    fn quiet_prints_only_the_programs_output() {
        let (stdout, stderr) = shown(true, false, vec![out(b"x"), err("y")]);
        assert_eq!((stdout.as_slice(), stderr.as_str()), (&b"x"[..], "y"));
    }

    #[test]
    fn compiler_output_goes_to_standard_error() {
        let compile = EventKind::Stage(Stage::Compile);
        let run = EventKind::Stage(Stage::Run);
        let events = vec![compile, out(b"warning\n"), run, out(b"42\n")];
        let (stdout, stderr) = shown(true, false, events);
        assert_eq!((stdout.as_slice(), stderr.as_str()), (&b"42\n"[..], "warning\n"));
    }

    #[test]
    fn the_summary_starts_on_a_new_line() {
        let (_, stderr) = shown(false, true, vec![out(b"no newline")]);
        assert!(stderr.starts_with("\n✓"), "{stderr:?}");
        let (_, stderr) = shown(false, false, vec![out(b"no newline")]);
        assert!(stderr.starts_with('✓'), "{stderr:?}");
    }
}
