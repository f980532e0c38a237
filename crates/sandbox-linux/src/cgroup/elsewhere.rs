//! Cgroups of our names in hierarchies that we do not use: container runtimes make one in each, and remove only the
//! last part of its path.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::Hierarchy;

/// Removes the cgroups of this name, and what is below them, wherever nobody is in them.
pub fn remove_everywhere(name: &str) {
    for directory in own_directories() {
        remove(&directory.join(name));
    }
}

/// The same for those whose makers are gone.
pub fn sweep_everywhere() {
    for directory in own_directories() {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            if entry.file_name().to_str().is_some_and(Hierarchy::is_left_by_the_dead) {
                remove(&entry.path());
            }
        }
    }
}

fn remove(cgroup: &Path) {
    for entry in fs::read_dir(cgroup).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            // One with somebody in it stays, and so does what is above it.
            let _ = fs::remove_dir(entry.path());
        }
    }
    let _ = fs::remove_dir(cgroup);
}

/// Where this process is in each hierarchy; with some places besides, in which nothing of ours is.
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
