//! One step of a build: its progress while it runs, and what its outcome means.

use sandbox_core::{
    Ending, Observer, StageOutcome, StagePlan, StreamKind, UsageSample, format_duration,
};

use super::PackageError;
use crate::runtime::PackageManager;

/// Turns any ending but success into an error.
pub(super) fn check(
    manager: PackageManager,
    plan: &StagePlan,
    outcome: &StageOutcome,
) -> Result<(), PackageError> {
    let limits = &plan.sandbox.limits;
    Err(match outcome.ending {
        Ending::Exited(0) => return Ok(()),
        Ending::Exited(_) => {
            let stderr = String::from_utf8_lossy(&outcome.stderr);
            let message = manager.error_line(&stderr);
            // A manager whose connection was refused often says only that it found nothing.
            PackageError::Refused(match outcome.proxy_refusals.first() {
                Some(reason) => format!("{message} ({reason})"),
                None => message,
            })
        }
        Ending::Signaled(signal) => {
            PackageError::Refused(format!("{} was killed by signal {signal}", manager.name()))
        }
        Ending::TimedOut(_) => {
            PackageError::Limit(format!("{} of time", format_duration(limits.wall_time())))
        }
        Ending::OutOfMemory => PackageError::Limit(format!("{} of memory", limits.memory())),
        Ending::TooMuchOutput => PackageError::Limit(format!("{} of output", limits.output())),
        Ending::TooManyFiles | Ending::TooMuchForWorkspace => {
            PackageError::Limit(format!("{} of files", plan.collect.total))
        }
        Ending::Cancelled => PackageError::Cancelled,
    })
}

/// Turns the output of the manager into progress messages.
pub(super) struct ProgressObserver<'a> {
    manager: PackageManager,
    line: Vec<u8>,
    progress: &'a mut dyn FnMut(&str),
}

/// A longer line names no package.
const MAX_LINE_BYTES: usize = 1000;

impl<'a> ProgressObserver<'a> {
    pub(super) fn new(manager: PackageManager, progress: &'a mut dyn FnMut(&str)) -> Self {
        Self { manager, line: Vec::new(), progress }
    }
}

impl Observer for ProgressObserver<'_> {
    fn output(&mut self, _: StreamKind, bytes: &[u8]) {
        for byte in bytes {
            match byte {
                b'\n' => {
                    let line = String::from_utf8_lossy(&self.line);
                    if let Some(message) = self.manager.fetched_package(&line) {
                        (self.progress)(&message);
                    }
                    self.line.clear();
                }
                byte if self.line.len() < MAX_LINE_BYTES => self.line.push(*byte),
                _ => {}
            }
        }
    }

    fn usage(&mut self, _: UsageSample) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_reported_by_line_whatever_the_chunks() {
        let mut heard = Vec::new();
        let mut progress = |text: &str| heard.push(text.to_owned());
        let mut listener = ProgressObserver::new(PackageManager::Pip, &mut progress);
        listener.output(StreamKind::Stdout, b"Looking in links: /x\nCollec");
        listener.output(StreamKind::Stdout, b"ting six\nCollecting \x1b[2J\n");
        listener.output(StreamKind::Stdout, &vec![b'x'; 5000]);
        listener.output(StreamKind::Stdout, b"\nCollecting idna\nCollecting cut off");
        assert_eq!(heard, ["pip: fetching six", "pip: fetching idna"]);
    }
}
