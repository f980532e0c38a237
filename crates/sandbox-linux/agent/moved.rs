//! Bytes that the program read and wrote. The kernel adds what a process has moved to its parent's own when it is waited
//! for; looked at before and after, the difference is the child's, however soon it ended.

use std::fs::File;
use std::os::unix::fs::FileExt as _;

/// What the agent's children have moved.
#[derive(Default)]
pub(crate) struct Moved {
    /// The kernel's count, opened while the agent may: it hides itself.
    file: Option<File>,
    pub(crate) read: u64,
    pub(crate) written: u64,
}

/// One look at it.
#[derive(Default)]
pub(crate) struct Look {
    read: u64,
    written: u64,
    /// Bytes that looking took, which the next look counts.
    cost: u64,
}

impl Moved {
    pub(crate) fn open() -> Self {
        Self { file: File::open("/proc/self/io").ok(), ..Self::default() }
    }

    pub(crate) fn look(&self) -> Look {
        let mut text = [0; 512];
        let count =
            self.file.as_ref().and_then(|file| file.read_at(&mut text, 0).ok()).unwrap_or(0);
        let text = std::str::from_utf8(&text[..count]).unwrap_or_default();
        let value = |name: &str| -> u64 {
            let value = text.lines().find_map(|line| line.strip_prefix(name));
            value.and_then(|value| value.trim().parse().ok()).unwrap_or(0)
        };
        Look { read: value("rchar:"), written: value("wchar:"), cost: count as u64 }
    }

    /// A child was waited for since this look, and nothing else was done.
    pub(crate) fn add_since(&mut self, before: &Look) {
        let now = self.look();
        self.read += now.read.saturating_sub(before.read + before.cost);
        self.written += now.written.saturating_sub(before.written);
    }
}
