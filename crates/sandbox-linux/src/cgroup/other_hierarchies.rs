//! Cgroups in hierarchies that are not used here: container runtimes create one in each, and remove
//! only the last part of its path.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::Hierarchy;

/// Removes the empty cgroups with this name, and their children, in all hierarchies.
pub fn remove_everywhere(name: &str) {
    for directory in own_directories() {
        remove(&directory.join(name));
    }
}

/// Removes the empty cgroups of dead processes in all hierarchies.
pub fn sweep_everywhere() {
    for directory in own_directories() {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            if entry.file_name().to_str().is_some_and(Hierarchy::is_left_by_the_dead) {
                remove(&entry.path());
            }
        }
    }
}

/// PIDs of processes whose cgroup path contains this name, in the hierarchy that counts processes.
pub fn processes_in(name: &str) -> io::Result<Vec<u32>> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let entry = entry?;
        let process = entry.file_name().to_str().and_then(|name| name.parse().ok());
        let Some(process) = process else { continue };
        // A process that has exited meanwhile is in none.
        let memberships = fs::read_to_string(entry.path().join("cgroup")).unwrap_or_default();
        if counted_in(&memberships).is_some_and(|path| path.contains(name)) {
            found.push(process);
        }
    }
    Ok(found)
}

/// The path in that hierarchy: with the pids controller on v1, and without any controller on v2.
fn counted_in(memberships: &str) -> Option<&str> {
    let lines = memberships.lines().map(|line| line.splitn(3, ':').skip(1));
    let mut lines = lines.filter_map(|mut parts| Some((parts.next()?, parts.next()?)));
    let counted = lines.clone().find(|(names, _)| names.split(',').any(|name| name == "pids"));
    counted.or_else(|| lines.find(|(names, _)| names.is_empty())).map(|(_, path)| path)
}

fn remove(cgroup: &Path) {
    for entry in fs::read_dir(cgroup).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            // One with members stays, and so do its parents.
            let _ = fs::remove_dir(entry.path());
        }
    }
    let _ = fs::remove_dir(cgroup);
}

/// This process's directory in each hierarchy; includes some paths that do not exist.
fn own_directories() -> Vec<PathBuf> {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let (mounts, cgroups) = (read("/proc/self/mountinfo"), read("/proc/self/cgroup"));
    let own: BTreeSet<&str> =
        cgroups.lines().filter_map(|line| line.splitn(3, ':').nth(2)).collect();
    let is_cgroup =
        |line: &&str| line.split_once(" - ").is_some_and(|(_, kind)| kind.starts_with("cgroup"));
    let places = mounts.lines().filter(is_cgroup).filter_map(|line| line.split(' ').nth(4));
    let below =
        |place| own.iter().map(move |own| Path::new(place).join(own.trim_start_matches('/')));
    places.flat_map(below).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_are_found_where_they_are_counted() {
        let both = "9:name=systemd:/a\n8:cpu,pids:/b\n0::/c\n";
        assert_eq!(counted_in(both), Some("/b"));
        assert_eq!(counted_in("1:name=systemd:/a\n0::/c:d\n"), Some("/c:d"));
        assert_eq!(counted_in(""), None);
    }

    #[test]
    fn this_process_is_in_its_own_cgroup() {
        let memberships = fs::read_to_string("/proc/self/cgroup").unwrap();
        let own = counted_in(&memberships).unwrap();
        assert!(processes_in(own).unwrap().contains(&std::process::id()));
        assert!(processes_in("no cgroup is called this").unwrap().is_empty());
    }
}
