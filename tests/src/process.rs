//! Processes as `/proc` shows them, and those that descend from this one.

use std::collections::BTreeMap;
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitOptions, kill_process};

use crate::wait::wait_until_empty;

/// A process in the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its id.
    pub id: i32,
    /// Its parent's id.
    pub parent: i32,
    /// Its name, as far as the kernel keeps it.
    pub name: String,
    /// `Z` for a zombie.
    pub state: char,
}

impl Process {
    /// The process of this number, if there is one.
    pub fn read(id: i32) -> Option<Self> {
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
        let (before, behind) = stat.rsplit_once(')')?;
        let (_, name) = before.split_once('(')?;
        let mut fields = behind.split_ascii_whitespace();
        Some(Self {
            id,
            name: name.to_owned(),
            state: fields.next()?.chars().next()?,
            parent: fields.next()?.parse().ok()?,
        })
    }

    /// The process as the kernel's calls take it.
    pub fn pid(&self) -> Pid {
        Pid::from_raw(self.id).expect("the process table has no process 0")
    }

    /// Ends it at once.
    pub fn kill(&self) {
        // One that has just ended by itself needs no killing.
        let _ = kill_process(self.pid(), Signal::KILL);
    }
}

/// Every process on this host, zombies included.
pub fn all() -> Vec<Process> {
    let entries = std::fs::read_dir("/proc").expect("/proc can be listed");
    let ids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    ids.filter_map(Process::read).collect()
}

/// Every process below this one, zombies included.
pub fn descendants() -> Vec<Process> {
    descendants_of(i32::try_from(std::process::id()).expect("process ids are small"))
}

/// Every process below that one, zombies included.
pub fn descendants_of(ancestor: i32) -> Vec<Process> {
    let mut children: BTreeMap<i32, Vec<Process>> = BTreeMap::new();
    for process in all() {
        children.entry(process.parent).or_default().push(process);
    }
    let mut found = Vec::new();
    let mut left = vec![ancestor];
    while let Some(parent) = left.pop() {
        for child in children.remove(&parent).unwrap_or_default() {
            left.push(child.id);
            found.push(child);
        }
    }
    found
}

/// Processes that lose their parent become children of this one from now on, instead of disappearing
/// from a count of descendants.
pub fn adopt_orphans() {
    let own = rustix::process::getpid();
    rustix::process::set_child_subreaper(Some(own)).expect("a process may adopt");
}

/// Waits until every descendant has ended, waiting for adopted ones as they do. Call it when no
/// child is left that another thread waits for.
pub fn wait_for_no_descendants(time: Duration) -> Vec<Process> {
    wait_until_empty(time, || {
        while let Ok(Some(_)) = rustix::process::wait(WaitOptions::NOHANG) {}
        descendants()
    })
}
