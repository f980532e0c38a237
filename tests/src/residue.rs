//! What executions could leave behind, counted for this process and what descends from it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::process::{Process, descendants};
use crate::wait::wait_for;

/// Where cgroups are mounted, whichever version they have.
const CGROUPS: &str = "/sys/fs/cgroup";
/// Directories in which programs leave temporary files.
const TEMPORARY: &[&str] = &["/tmp", "/var/tmp", "/dev/shm", "/run"];
/// How long nothing may change before the counts are taken for those of a process at rest.
const REST: Duration = Duration::from_millis(500);

/// Counts of everything that must not grow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Residue {
    /// Open descriptors of this process.
    pub descriptors: usize,
    /// Threads of this process.
    pub threads: usize,
    /// Processes below this one.
    pub processes: usize,
    /// Distinct namespaces of those processes.
    pub namespaces: usize,
    /// Cgroup directories with this process's id in their name.
    pub cgroups: usize,
    /// Mounts that this process sees.
    pub mounts: usize,
    /// Files and directories in the temporary directories whose names tell that they are ours.
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

    /// Counts once the process has come to rest: spare slots made, used ones taken down.
    pub fn count_at_rest() -> Self {
        let mut last = Self::count();
        let mut since = Instant::now();
        let rested = wait_for(Duration::from_secs(30), || {
            let now = Self::count();
            if now != last {
                last = now;
                since = Instant::now();
            }
            (since.elapsed() >= REST).then(|| last.clone())
        });
        rested.expect("the counts come to rest")
    }

    /// The same counts, and no temporary file that was not there; others may remove theirs meanwhile.
    fn is_no_more_than(&self, before: &Self) -> bool {
        let with_same_files = Self { temporary: before.temporary.clone(), ..self.clone() };
        with_same_files == *before && self.temporary.is_subset(&before.temporary)
    }

    /// Waits until the counts are again what they were, and tells both if they never are.
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
            format!("there is\n{last:#?}\nwhere there was\n{self:#?}\nprocesses: {processes:#?}")
        })
    }

    /// Fails the test if the counts never are again what they were.
    pub fn assert_returns(&self, after: &str) {
        if let Err(difference) = self.wait_for_return() {
            panic!("after {after} {difference}");
        }
    }
}

/// The cgroup directories that this process made, dead or alive.
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
    // Directories come and go while we look.
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

/// Resident memory of this process in KiB: now, or the most there ever was.
pub fn resident_kib(field: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("a process sees itself");
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    let words = line.and_then(|line| line.trim_start_matches(':').split_whitespace().next());
    words.and_then(|number| number.parse().ok()).expect("the status names resident memory")
}
