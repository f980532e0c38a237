//! Bytes that the program read and wrote. The kernel adds the counters of a child to its parent's when the child is waited
//! for, so the difference of the agent's own counters before and after is the child's share, however short its life was.

use std::fs::File;
use std::os::unix::fs::FileExt as _;

/// Sums over the agent's children.
#[derive(Default)]
pub(crate) struct IoCounters {
    /// `/proc/self/io`.
    file: Option<File>,
    pub(crate) read_bytes: u64,
    pub(crate) written_bytes: u64,
}

/// The agent's counters at one moment.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Sample {
    read_bytes: u64,
    written_bytes: u64,
    /// Length of the file: taking the next sample adds it to the bytes read.
    length: u64,
}

impl IoCounters {
    pub(crate) fn open() -> Self {
        Self { file: File::open("/proc/self/io").ok(), ..Self::default() }
    }

    pub(crate) fn sample(&self) -> Sample {
        let mut text = [0; 512];
        let length = self.file.as_ref().and_then(|file| file.read_at(&mut text, 0).ok());
        text.get(..length.unwrap_or(0)).map(parse).unwrap_or_default()
    }

    /// Adds what a child used that was waited for since the sample, when nothing else was done.
    pub(crate) fn add_since(&mut self, before: &Sample) {
        let now = self.sample();
        self.add(before, &now);
    }

    fn add(&mut self, before: &Sample, now: &Sample) {
        let read = now.read_bytes.saturating_sub(before.read_bytes.saturating_add(before.length));
        let written = now.written_bytes.saturating_sub(before.written_bytes);
        self.read_bytes = self.read_bytes.saturating_add(read);
        self.written_bytes = self.written_bytes.saturating_add(written);
    }
}

fn parse(text: &[u8]) -> Sample {
    let length = text.len() as u64;
    let text = std::str::from_utf8(text).unwrap_or_default();
    let value = |name: &str| -> u64 {
        let value = text.lines().find_map(|line| line.strip_prefix(name));
        value.and_then(|value| value.trim().parse().ok()).unwrap_or(0)
    };
    Sample { read_bytes: value("rchar:"), written_bytes: value("wchar:"), length }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_format_is_parsed() {
        let text = b"rchar: 323934931\nwchar: 323929600\nsyscr: 632687\nsyscw: 632675\n";
        let sample = Sample { read_bytes: 323_934_931, written_bytes: 323_929_600, length: 62 };
        assert_eq!(parse(text), sample);
        assert_eq!(parse(b""), Sample::default());
        assert_eq!(parse(b"rchar: x\n"), Sample { length: 9, ..Sample::default() });
    }

    #[test]
    fn the_cost_of_a_sample_is_not_the_childs() {
        let sample = |read_bytes, written_bytes| Sample { read_bytes, written_bytes, length: 10 };
        let mut counters = IoCounters::default();
        counters.add(&sample(100, 50), &sample(115, 57));
        counters.add(&sample(115, 57), &sample(125, 57));
        assert_eq!((counters.read_bytes, counters.written_bytes), (5, 7));
        // Counters that went backwards count nothing.
        counters.add(&sample(100, 50), &sample(0, 0));
        assert_eq!((counters.read_bytes, counters.written_bytes), (5, 7));
    }

    #[test]
    fn what_a_child_read_is_counted_when_it_is_waited_for() {
        let mut counters = IoCounters::open();
        if counters.file.is_none() {
            return; // A kernel without I/O accounting.
        }
        let mut head = std::process::Command::new("head");
        head.args(["-c", "100000", "/dev/zero"]).stdout(std::process::Stdio::null());
        let child = head.spawn();
        let mut child = child.expect("head is installed everywhere");
        let before = counters.sample();
        assert!(child.wait().expect("it is a child").success());
        counters.add_since(&before);
        assert!(counters.read_bytes >= 100_000, "{}", counters.read_bytes);
        assert!(counters.written_bytes >= 100_000, "{}", counters.written_bytes);
    }
}
