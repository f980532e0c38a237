//! Overlays over host directories, so that a program can write to them without changing them.
//!
//! The upper directory is on the sandbox's own file system: what is written counts against the disk
//! limit and is removed with the sandbox. Read-only directories get an overlay too, so that their
//! inodes are the sandbox's own (`private_root`).

use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::PathBuf;

use rustix::fs::{CWD, Mode};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, UnmountFlags, fsconfig_create,
    fsconfig_set_flag, fsconfig_set_string, fsmount, fsopen, move_mount, unmount,
};

use crate::private_root::read_only_overlay;
use crate::rootfs::{STAGING, give_to_program};
use crate::step::{AtStep, StepError};
use crate::template::EMPTY;

/// Replaces a detached mount by an overlay over it. Writes go to `room`.
pub(crate) fn cover(mount: &mut OwnedFd, room: &OwnedFd, number: usize) -> Result<(), StepError> {
    let place = format!("/proc/self/fd/{}", room.as_fd().as_raw_fd());
    let (upper, work) = (format!("{place}/upper{number}"), format!("{place}/work{number}"));
    for directory in [&upper, &work] {
        rustix::fs::mkdir(directory, Mode::from_raw_mode(0o755)).at("create an upper layer")?;
    }
    give_to_program(&upper)?;
    // A lower layer must be attached in this mount namespace; the overlay then keeps it alive.
    move_mount(&*mount, "", CWD, STAGING, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)
        .at("attach what is to be covered")?;
    let overlay = fsopen("overlay", FsOpenFlags::FSOPEN_CLOEXEC).at("open an overlay")?;
    for (key, value) in [("lowerdir", STAGING), ("upperdir", &upper), ("workdir", &work)] {
        fsconfig_set_string(&overlay, key, value).at("describe an overlay")?;
    }
    // An unprivileged overlay may only set attributes in the `user` namespace.
    fsconfig_set_flag(&overlay, "userxattr").at("describe an overlay")?;
    fsconfig_create(&overlay).at("make an overlay")?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    *mount = fsmount(&overlay, FsMountFlags::FSMOUNT_CLOEXEC, attributes).at("mount an overlay")?;
    unmount(STAGING, UnmountFlags::DETACH).at("unmount what was covered")
}

/// Replaces a detached mount by a read-only overlay over it. The mount itself is attached over the
/// empty directory of the template's root, where no path inside leads to it: unmounting would be
/// slow.
pub(crate) fn separate(
    mount: &mut OwnedFd,
    template: &OwnedFd,
    room: &OwnedFd,
) -> Result<(), StepError> {
    let empty = "empty";
    match rustix::fs::mkdirat(room, empty, Mode::from_raw_mode(0o755)) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(error) => return Err(error).at("create a mount point for a toolchain"),
    }
    let covered = EMPTY.trim_start_matches('/');
    move_mount(&*mount, "", template, covered, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)
        .at("attach a toolchain")?;
    let below = |place: &OwnedFd, name| {
        PathBuf::from(format!("/proc/self/fd/{}/{name}", place.as_raw_fd()))
    };
    let nodes = MountAttrFlags::MOUNT_ATTR_NODEV;
    *mount = read_only_overlay(&below(template, covered), &below(room, empty), nodes)?;
    Ok(())
}
