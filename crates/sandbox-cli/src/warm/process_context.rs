//! The settings that an execution inherits from its process. A helper with other settings would give other results than
//! the client.

use std::fmt::Write as _;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::unix::fs::MetadataExt;

use super::settings;

/// Lines of `/proc/self/status` that say what a process may do.
const RIGHTS: &[&str] = &[
    "Umask:",
    "Uid:",
    "Gid:",
    "Groups:",
    "CapInh:",
    "CapPrm:",
    "CapEff:",
    "CapBnd:",
    "CapAmb:",
    "NoNewPrivs:",
    "Seccomp:",
    "Cpus_allowed_list:",
];

/// What of the kernel a process sees.
const NAMESPACES: &[&str] = &["cgroup", "ipc", "mnt", "net", "pid", "time", "user", "uts"];

/// The context of this process as text; equal contexts give equal text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ProcessContext(String);

impl ProcessContext {
    /// Those of this process.
    pub(super) fn own() -> io::Result<Self> {
        let mut text = String::new();
        for line in fs::read_to_string("/proc/self/status")?.lines() {
            if RIGHTS.iter().any(|right| line.starts_with(right)) {
                text.push_str(line);
                text.push('\n');
            }
        }
        text.push_str(&fs::read_to_string("/proc/self/limits")?);
        for name in NAMESPACES {
            // A kernel that lacks one has nothing to differ in.
            let namespace = fs::read_link(format!("/proc/self/ns/{name}")).unwrap_or_default();
            writeln!(text, "{}", namespace.display()).map_err(io::Error::other)?;
        }
        let root = fs::metadata("/")?;
        let priority = rustix::process::getpriority_process(None)?;
        writeln!(text, "root {} {}\npriority {priority}", root.dev(), root.ino())
            .map_err(io::Error::other)?;
        for variable in settings::variables() {
            writeln!(text, "{variable:?}").map_err(io::Error::other)?;
        }
        Ok(Self(text))
    }

    /// A short name. Two that share one are told apart when they meet.
    pub(super) fn key(&self) -> String {
        let mut hasher = DefaultHasher::new();
        self.0.hash(&mut hasher);
        format!("{:016x}", hasher.finish())
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_the_same_when_asked_twice_and_name_what_matters() {
        let (first, second) = (ProcessContext::own().unwrap(), ProcessContext::own().unwrap());
        assert_eq!(first, second);
        assert_eq!(first.key(), second.key());
        for part in ["Uid:", "CapEff:", "Max open files", "user:[", "priority ", "(\"PATH\", "] {
            assert!(first.as_str().contains(part), "no {part:?} in {first:?}");
        }
    }
}
