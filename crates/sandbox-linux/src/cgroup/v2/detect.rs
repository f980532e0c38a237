//! Finds where in the v2 hierarchy this process may create cgroups with limits.
//!
//! The difficulty: a cgroup other than the root that has member processes cannot enable controllers
//! for its children, and the cgroup of this process has at least one member, this process. So either
//! the sandboxes' cgroups go elsewhere, or this process moves. In the order of the attempts:
//!
//! 1. This process is in a `sandbox-run.supervisor` cgroup already, because it or its parent has
//!    moved there: the parent cgroup has no member processes.
//! 2. The cgroup of this process was delegated (it belongs to this user, or the service manager has
//!    marked it) and has no other members: move into a `sandbox-run.supervisor` cgroup below it and
//!    create the sandboxes' cgroups beside that. They stay under the limits of the service and are
//!    removed with it. Other members are never moved.
//! 3. As root, a `sandbox-run` group directly below the root of the hierarchy.
//! 4. Without other members and without a sign of delegation: as 2. This is the case in a container,
//!    where the visible root of the hierarchy is itself a cgroup with a process in it. It comes last
//!    because a service manager may disable controllers in cgroups that it did not delegate.

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

/// Moves this process one level down, so that its cgroup can have children with controllers. Moves it
/// back if that does not help.
fn move_aside(own: &Arc<Directory>) -> Result<V2Hierarchy, CgroupError> {
    let enabled_before = own.read(SUBTREE_CONTROL)?;
    let aside = match own.make_child(SUPERVISOR_GROUP) {
        // Left by a dead supervisor: this process is the only member.
        Err(error) if error.errno() == Some(Errno::EXIST) => own.open_child(SUPERVISOR_GROUP)?,
        outcome => outcome?,
    };
    let outcome = aside.write("cgroup.procs", "0").and_then(|()| use_freed(Arc::clone(own)));
    if outcome.is_err() {
        move_back(own, &enabled_before);
    }
    outcome
}

/// Best effort: the error that led here is reported.
fn move_back(own: &Directory, enabled_before: &str) {
    // A cgroup that enables controllers for its children accepts no process, so disable them first.
    let enabled = own.read(SUBTREE_CONTROL).unwrap_or_default();
    for controller in enabled.split_ascii_whitespace() {
        if !parse::lists(enabled_before, controller) {
            let _ = own.write(SUBTREE_CONTROL, &format!("-{controller}"));
        }
    }
    let _ = own.write("cgroup.procs", "0");
    let _ = own.remove_child(SUPERVISOR_GROUP);
}

/// systemd marks a delegated cgroup with one of two extended attributes.
fn is_marked_as_delegated(directory: &Directory) -> bool {
    ["trusted.delegate", "user.delegate"].iter().any(|attribute| {
        let mut value = [0_u8; 8];
        // By path, because extended attributes cannot be read through an O_PATH descriptor.
        rustix::fs::getxattr(directory.path(), *attribute, &mut value)
            .is_ok_and(|length| &value[..length] == b"1")
    })
}
