use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use sandbox_images::Progress;

use crate::errors::printable;
use crate::output::units;

/// A progress line on a terminal, erased at the end. Prints nothing in a pipe.
pub(super) struct ProgressLine {
    shown: bool,
    last: Option<Instant>,
}

/// Minimum time between two updates of a byte count.
const MIN_INTERVAL: Duration = Duration::from_millis(100);
/// Maximum width of the line in characters.
const MAX_WIDTH: usize = 78;

impl ProgressLine {
    pub(super) fn new(quiet: bool) -> Self {
        Self { shown: !quiet && io::stderr().is_terminal(), last: None }
    }

    pub(super) fn show(&mut self, progress: &Progress) {
        let is_too_soon = self.last.is_some_and(|last| last.elapsed() < MIN_INTERVAL);
        let is_frequent = matches!(progress, Progress::Fetching { .. } | Progress::Reading { .. });
        if !(is_too_soon && is_frequent) {
            self.print(&describe(progress));
        }
    }

    pub(super) fn print(&mut self, text: &str) {
        if !self.shown {
            return;
        }
        self.last = Some(Instant::now());
        let text: String = printable(text).chars().take(MAX_WIDTH).collect();
        // A failure to print progress must not hide the result.
        let _ = write!(io::stderr().lock(), "\r\x1b[K{text}");
    }

    pub(super) fn clear(&self) {
        if self.last.is_some() {
            let _ = write!(io::stderr().lock(), "\r\x1b[K");
        }
    }
}

fn describe(progress: &Progress) -> String {
    match progress {
        Progress::Fetching { digest, bytes, of } => {
            let (bytes, of) = (units::format_size(*bytes), units::format_size(*of));
            format!("fetching {}: {bytes} of {of}", &digest.digits()[..12])
        }
        Progress::Retrying { digest, reason } => {
            format!("retrying {}: the registry {reason}", &digest.digits()[..12])
        }
        Progress::Reading { bytes } => format!("reading: {}", units::format_size(*bytes)),
        Progress::Unpacking { layer, of } => format!("unpacking layer {layer} of {of}"),
        _ => "working".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_step_is_described() {
        let digest: sandbox_images::Digest = format!("sha256:{}", "ab".repeat(32)).parse().unwrap();
        let fetching = Progress::Fetching { digest: digest.clone(), bytes: 1024, of: 4096 };
        assert_eq!(describe(&fetching), "fetching abababababab: 1.0 KiB of 4.0 KiB");
        let retrying = Progress::Retrying { digest, reason: "broke off".to_owned() };
        assert_eq!(describe(&retrying), "retrying abababababab: the registry broke off");
        assert_eq!(describe(&Progress::Reading { bytes: 5 }), "reading: 5 B");
        assert_eq!(describe(&Progress::Unpacking { layer: 1, of: 2 }), "unpacking layer 1 of 2");
    }
}
