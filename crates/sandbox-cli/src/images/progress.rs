use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use sandbox_images::Progress;

use crate::errors::printable;
use crate::output::figures;

/// One line on a terminal that says how far it is, and is gone when it is done. Nothing in a pipe.
pub(super) struct Line {
    shown: bool,
    last: Option<Instant>,
}

/// More often nobody can read it.
const BETWEEN: Duration = Duration::from_millis(100);
const LONGEST: usize = 78;

impl Line {
    pub(super) fn on_terminal(quiet: bool) -> Self {
        Self { shown: !quiet && io::stderr().is_terminal(), last: None }
    }

    pub(super) fn show(&mut self, progress: &Progress) {
        let is_soon = self.last.is_some_and(|last| last.elapsed() < BETWEEN);
        let is_frequent = matches!(progress, Progress::Fetching { .. } | Progress::Reading { .. });
        if !(is_soon && is_frequent) {
            self.say(&in_words(progress));
        }
    }

    pub(super) fn say(&mut self, text: &str) {
        if !self.shown {
            return;
        }
        self.last = Some(Instant::now());
        let text: String = printable(text).chars().take(LONGEST).collect();
        // It is only for the eye.
        let _ = write!(io::stderr().lock(), "\r\x1b[K{text}");
    }

    pub(super) fn clear(&self) {
        if self.last.is_some() {
            let _ = write!(io::stderr().lock(), "\r\x1b[K");
        }
    }
}

fn in_words(progress: &Progress) -> String {
    match progress {
        Progress::Fetching { digest, bytes, of } => {
            let (bytes, of) = (figures::size(*bytes), figures::size(*of));
            format!("fetching {}: {bytes} of {of}", &digest.digits()[..12])
        }
        Progress::Retrying { digest, reason } => {
            format!("trying {} again: the registry {reason}", &digest.digits()[..12])
        }
        Progress::Reading { bytes } => format!("reading: {}", figures::size(*bytes)),
        Progress::Unpacking { layer, of } => format!("unpacking layer {layer} of {of}"),
        _ => "working".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_step_is_told_in_words() {
        let digest: sandbox_images::Digest = format!("sha256:{}", "ab".repeat(32)).parse().unwrap();
        let fetching = Progress::Fetching { digest: digest.clone(), bytes: 1024, of: 4096 };
        assert_eq!(in_words(&fetching), "fetching abababababab: 1.0 KiB of 4.0 KiB");
        let retrying = Progress::Retrying { digest, reason: "broke off".to_owned() };
        assert_eq!(in_words(&retrying), "trying abababababab again: the registry broke off");
        assert_eq!(in_words(&Progress::Reading { bytes: 5 }), "reading: 5 B");
        assert_eq!(in_words(&Progress::Unpacking { layer: 1, of: 2 }), "unpacking layer 1 of 2");
    }
}
