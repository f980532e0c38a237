//! Counts what executions could leave behind: descriptors, processes, namespaces, cgroups, mounts and files.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::process::{Process, descendants};
use crate::wait::wait_for;

/// Where cgroups of both versions are mounted.
const CGROUPS: &str = "/sys/fs/cgroup";
/// Directories in which programs leave temporary files.
const TEMPORARY: &[&str] = &["/tmp", "/var/tmp", "/dev/shm", "/run"];
/// The process is idle when the counts have not changed for this long.
const IDLE_TIME: Duration = Duration::from_millis(500);

/// Counts of everything that must not grow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Residue {
    /// Open descriptors of this process.
    pub descriptors: usize,
    /// Threads of this process.
    pub threads: usize,
    /// Descendants of this process.
    pub processes: usize,
    /// Distinct namespaces of those processes.
    pub namespaces: usize,
    /// Cgroups that this process created.
    pub cgroups: usize,
    /// Mounts in this process's namespace.
    pub mounts: usize,
    /// Files and directories of this project in the temporary directories.
    pub temporary: BTreeSet<PathBuf>,
}

impl Residue {
    /// Counts now.
    pub fn count() -> Self {
        let processes = descendants();
        Self {
            descriptors: names_in("/proc/self/fd"),
            threads: names_in("/proc/self/task"),
            namespaces: namespaces_of(&processes),
            processes: processes.len(),
            cgroups: cgroups_of(std::process::id()).len(),
            mounts: mounts(),
            temporary: temporary_files(),
        }
    }

    /// Counts when the process is idle: spare slots are prepared, used ones torn down.
    pub fn count_at_rest() -> Self {
        let mut last = Self::count();
        let mut since = Instant::now();
        let rested = wait_for(Duration::from_secs(30), || {
            let now = Self::count();
            if now != last {
                last = now;
                since = Instant::now();
            }
            (since.elapsed() >= IDLE_TIME).then(|| last.clone())
        });
        rested.expect("the counts come to rest")
    }

    /// Whether the counts are the same and no temporary file is new. Other processes may remove theirs.
    fn is_no_more_than(&self, before: &Self) -> bool {
        let with_same_files = Self { temporary: before.temporary.clone(), ..self.clone() };
        with_same_files == *before && self.temporary.is_subset(&before.temporary)
    }

    /// Waits until the counts have returned to these. The error shows both.
    pub fn wait_for_return(&self) -> Result<(), String> {
        let mut last = None;
        let returned = wait_for(Duration::from_secs(30), || {
            let now = Self::count();
            let returned = now.is_no_more_than(self);
            last = Some(now);
            returned.then_some(())
        });
        returned.ok_or_else(|| {
            let processes = descendants();
            format!("the counts are\n{last:#?}\nand were\n{self:#?}\nprocesses: {processes:#?}")
        })
    }

    /// Fails the test if the counts do not return to these.
    pub fn assert_returns(&self, after: &str) {
        if let Err(difference) = self.wait_for_return() {
            panic!("after {after}, {difference}");
        }
    }
}

/// The cgroups that a process created. It may have exited.
pub fn cgroups_of(process: u32) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let beginning = format!("sandbox-run.{process}.");
    walk(Path::new(CGROUPS), &mut |directory, name| {
        if name.starts_with(&beginning) {
            found.push(directory.to_owned());
        }
    });
    found
}

fn walk(directory: &Path, visit: &mut impl FnMut(&Path, &str)) {
    // Directories are created and removed meanwhile.
    let Ok(entries) = std::fs::read_dir(directory) else {
        return;
    };
    for entry in entries.flatten() {
        if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        let path = entry.path();
        visit(&path, &entry.file_name().to_string_lossy());
        walk(&path, visit);
    }
}

fn names_in(directory: &str) -> usize {
    let entries = std::fs::read_dir(directory);
    entries.expect("a process can look at itself").count()
}

fn namespaces_of(processes: &[Process]) -> usize {
    let mut found = BTreeSet::new();
    for process in processes {
        let Ok(entries) = std::fs::read_dir(format!("/proc/{}/ns", process.id)) else {
            continue;
        };
        for entry in entries.flatten() {
            found.extend(std::fs::read_link(entry.path()));
        }
    }
    found.len()
}

fn mounts() -> usize {
    let table = std::fs::read_to_string("/proc/self/mountinfo");
    table.expect("a process can see its mounts").lines().count()
}

fn temporary_files() -> BTreeSet<PathBuf> {
    TEMPORARY
        .iter()
        .filter_map(|directory| std::fs::read_dir(directory).ok())
        .flat_map(Iterator::flatten)
        .filter(|entry| entry.file_name().to_string_lossy().contains("sandbox-run"))
        .map(|entry| entry.path())
        .collect()
}

/// Resident memory of this process in KiB: `VmRSS` now, `VmHWM` at its peak.
pub fn resident_kib(field: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("a process sees itself");
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    let words = line.and_then(|line| line.trim_start_matches(':').split_whitespace().next());
    words.and_then(|number| number.parse().ok()).expect("the status names resident memory")
}
