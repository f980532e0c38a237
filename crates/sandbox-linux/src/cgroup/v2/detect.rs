//! Where in the v2 hierarchy we may make cgroups with limits.
//!
//! The rule that makes this hard: a cgroup other than the root that has processes in it cannot give
//! controllers to cgroups below it. Our own cgroup always has a process in it, namely us. So either
//! the cgroups go elsewhere, or we move out of the way. In the order in which they are tried:
//!
//! 1. We are in a `sandbox-run.supervisor` cgroup already, because this process or the one that
//!    started it has been here before: the cgroup above it is free of processes.
//! 2. Our own cgroup was delegated to us (it belongs to this user, or the service manager has
//!    marked it) and we are alone in it: move into a `sandbox-run.supervisor` cgroup below it and
//!    put the sandboxes beside that. They stay under the limits of the service and die with it.
//!    With company we do not do this: other people's processes are not ours to move.
//! 3. As root, a `sandbox-run` group directly below the root of the hierarchy.
//! 4. Alone in our own cgroup without a sign of delegation: as 2. This is the way in a container,
//!    where the root of the hierarchy that we see is itself a cgroup with a process in it. It comes
//!    last because a service manager may switch controllers off again in what it did not delegate.

use std::path::Path;
use std::sync::Arc;

use rustix::io::Errno;

use super::super::file::Directory;
use super::super::locate::{Locations, Place};
use super::super::{CgroupError, parse};
use super::hierarchy::{Base, SUBTREE_CONTROL, V2Hierarchy, enable_controllers};

/// The cgroup into which this process moves when it has to make room.
const SUPERVISOR_GROUP: &str = "sandbox-run.supervisor";

/// What can be done about a refusal.
fn remedy() -> &'static str {
    if rustix::process::geteuid().is_root() {
        "start this process alone in its cgroup, or as a service with Delegate=yes"
    } else {
        "run as root, or start this process alone in a delegated cgroup, for instance with: \
         systemd-run --user --scope --property=Delegate=yes"
    }
}

impl V2Hierarchy {
    pub(crate) fn detect(locations: &Locations, reasons: &mut Vec<String>) -> Option<V2Hierarchy> {
        let found = locations.v2().and_then(|place| {
            let open = |path: &Path| Directory::open(path).map_err(|error| error.in_full());
            let (root, own) = (open(&place.mount_point)?, open(&place.own)?);
            controllers_are_offered(&root)?;
            Ok((place, root, own))
        });
        match found {
            Ok((place, root, own)) => find_base(&place, root, own, reasons),
            Err(reason) => {
                reasons.push(reason);
                None
            }
        }
    }
}

fn controllers_are_offered(root: &Directory) -> Result<(), String> {
    let offered = root.read("cgroup.controllers").map_err(|error| error.in_full())?;
    let missing: Vec<&str> =
        ["memory", "pids"].into_iter().filter(|name| !parse::lists(&offered, name)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(format!(
        "The cgroup v2 hierarchy at {} has no {} controller; they are in use by cgroup v1 or not \
         handed to this container. Start the host with the kernel option cgroup_no_v1=all.",
        root.path().display(),
        missing.join(" and no ")
    ))
}

fn find_base(
    place: &Place,
    root: Directory,
    own: Directory,
    reasons: &mut Vec<String>,
) -> Option<V2Hierarchy> {
    let mut refuse = |what: &str, error: &CgroupError| {
        reasons.push(format!("cgroup v2, {what}: {}; {}.", error.in_full(), remedy()));
    };
    let moved = place.own.file_name().is_some_and(|name| name == SUPERVISOR_GROUP);
    if let (true, Some(above)) = (moved, place.own.parent()) {
        match Directory::open(above).and_then(|above| use_freed(Arc::new(above))) {
            Ok(hierarchy) => return Some(hierarchy),
            Err(error) => refuse("beside our own cgroup", &error),
        }
    }
    let alone = !moved && own.processes().is_ok_and(|members| members == [std::process::id()]);
    let is_root = rustix::process::geteuid().is_root();
    let delegated = !is_root || is_marked_as_delegated(&own);
    let own = Arc::new(own);
    if alone && delegated {
        match move_aside(&own) {
            Ok(hierarchy) => return Some(hierarchy),
            Err(error) => refuse("below our own cgroup", &error),
        }
    }
    if is_root {
        match V2Hierarchy::try_out(Base::TopLevel(root)) {
            Ok(hierarchy) => return Some(hierarchy),
            Err(error) => refuse("directly below the root", &error),
        }
    }
    if alone && !delegated {
        match move_aside(&own) {
            Ok(hierarchy) => return Some(hierarchy),
            Err(error) => refuse("below our own cgroup", &error),
        }
    }
    if !alone && !moved {
        reasons.push(format!(
            "cgroup v2, below our own cgroup: {} has other processes in it, which are not ours to \
             move; {}.",
            place.own.display(),
            remedy()
        ));
    }
    None
}

fn use_freed(directory: Arc<Directory>) -> Result<V2Hierarchy, CgroupError> {
    enable_controllers(&directory)?;
    V2Hierarchy::try_out(Base::Lasting(directory))
}

/// Moves this process one level down, so that its cgroup can hold others. Moves it back when that
/// turns out to be of no use.
fn move_aside(own: &Arc<Directory>) -> Result<V2Hierarchy, CgroupError> {
    let enabled_before = own.read(SUBTREE_CONTROL)?;
    let aside = match own.make_child(SUPERVISOR_GROUP) {
        // Left by a supervisor that was here before and is dead, or we would not be alone.
        Err(error) if error.errno() == Some(Errno::EXIST) => own.open_child(SUPERVISOR_GROUP)?,
        outcome => outcome?,
    };
    let outcome = aside.write("cgroup.procs", "0").and_then(|()| use_freed(Arc::clone(own)));
    if outcome.is_err() {
        move_back(own, &enabled_before);
    }
    outcome
}

/// As far as it goes: the error that led here is the one to report.
fn move_back(own: &Directory, enabled_before: &str) {
    // A cgroup that gives controllers to others takes in no process, so these go first.
    let enabled = own.read(SUBTREE_CONTROL).unwrap_or_default();
    for controller in enabled.split_ascii_whitespace() {
        if !parse::lists(enabled_before, controller) {
            let _ = own.write(SUBTREE_CONTROL, &format!("-{controller}"));
        }
    }
    let _ = own.write("cgroup.procs", "0");
    let _ = own.remove_child(SUPERVISOR_GROUP);
}

/// systemd marks a cgroup it will not touch again with one of two extended attributes.
fn is_marked_as_delegated(directory: &Directory) -> bool {
    ["trusted.delegate", "user.delegate"].iter().any(|attribute| {
        let mut value = [0_u8; 8];
        // By path, because extended attributes cannot be read through an O_PATH descriptor.
        rustix::fs::getxattr(directory.path(), *attribute, &mut value)
            .is_ok_and(|length| &value[..length] == b"1")
    })
}
