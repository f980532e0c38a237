//! Processes from `/proc`, and the descendants of this one.

use std::collections::BTreeMap;
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitOptions, kill_process};

use crate::wait::wait_until_empty;

/// A process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its PID.
    pub id: i32,
    /// Its parent's PID.
    pub parent: i32,
    /// Its name, cut to 15 bytes by the kernel.
    pub name: String,
    /// `Z` for a zombie.
    pub state: char,
}

impl Process {
    /// Reads a process; `None` if there is none with this PID.
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

    /// Its PID for system calls.
    pub fn pid(&self) -> Pid {
        Pid::from_raw(self.id).expect("the process table has no process 0")
    }

    /// Sends SIGKILL.
    pub fn kill(&self) {
        // It may have exited.
        let _ = kill_process(self.pid(), Signal::KILL);
    }
}

/// All processes of this host, zombies included.
pub fn all() -> Vec<Process> {
    let entries = std::fs::read_dir("/proc").expect("/proc can be listed");
    let ids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    ids.filter_map(Process::read).collect()
}

/// All descendants of this process, zombies included.
pub fn descendants() -> Vec<Process> {
    descendants_of(i32::try_from(std::process::id()).expect("process ids are small"))
}

/// All descendants of a process, zombies included.
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

/// Makes this process a subreaper, so that descendants whose parent exits still count as descendants.
pub fn adopt_orphans() {
    let own = rustix::process::getpid();
    rustix::process::set_child_subreaper(Some(own)).expect("a process can become a subreaper");
}

/// Reaps descendants until none is left; returns those left at the timeout. No other thread may wait for a child.
pub fn wait_for_no_descendants(timeout: Duration) -> Vec<Process> {
    wait_until_empty(timeout, || {
        while let Ok(Some(_)) = rustix::process::wait(WaitOptions::NOHANG) {}
        descendants()
    })
}
