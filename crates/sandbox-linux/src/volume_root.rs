//! A root for one sandbox, for volumes at paths that the shared root does not have.
//!
//! The shared root is read-only and common to all sandboxes. So another one is assembled from the
//! same parts: its mounts are mounted again, and a directory in which a mount point is needed is
//! created anew with everything that it contains.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Mode, Timespec, Timestamps};
use rustix::mount::{
    MountFlags, UnmountFlags, mount, mount_bind_recursive, mount_remount, unmount,
};
use sandbox_protocol::exec::VolumeMount;

use crate::rootfs::{STAGING, below_writable, make_mount_point};
use crate::step::{AtStep, StepError};
use crate::syscall;

/// Creates mount points for volumes outside the writable directories, if there are any.
pub(crate) fn make_for(volumes: &[VolumeMount<'_>]) -> Result<(), StepError> {
    let outside = volumes.iter().filter(|volume| !below_writable(volume.destination));
    let places: Vec<&VolumeMount<'_>> = outside.collect();
    if places.is_empty() {
        return Ok(());
    }
    rustix::process::umask(Mode::from_raw_mode(0o022));
    let stage = Path::new(STAGING);
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    mount("tmpfs", stage, "tmpfs", flags, Some(c"size=1m,mode=755"))
        .at("mount a root for the volumes")?;
    copy_directory(Path::new("/"), stage, &places)?;
    for volume in &places {
        let place = stage.join(volume.destination.trim_start_matches('/'));
        make_mount_point(&place, volume.is_directory)?;
    }
    for volume in &places {
        let place = stage.join(volume.destination.trim_start_matches('/'));
        let above = place.ancestors().skip(1).take_while(|path| path.starts_with(stage));
        // A mounted directory was not created here, and may be read-only.
        above.filter(|path| is_on_same_device(path, stage)).try_for_each(age)?;
    }
    rustix::process::chdir(stage).at("enter the root for the volumes")?;
    syscall::pivot_root(c".", c".").at("make the root for the volumes the root")?;
    unmount(".", UnmountFlags::DETACH).at("unmount the shared root")?;
    rustix::process::chdir("/").at("enter the root")?;
    mount_remount("/", flags | MountFlags::BIND | MountFlags::RDONLY, c"")
        .at("make the root read-only")
}

/// Sets the same time for a created directory in every sandbox, so that it does not reveal when the
/// sandbox was prepared.
fn age(directory: &Path) -> Result<(), StepError> {
    /// Midnight of 1 January 2000, as in layers.
    const LONG_AGO: Timespec = Timespec { tv_sec: 946_684_800, tv_nsec: 0 };
    let times = Timestamps { last_access: LONG_AGO, last_modification: LONG_AGO };
    rustix::fs::utimensat(CWD, directory, &times, AtFlags::empty())
        .at(&format!("set the time of {}", directory.display()))
}

/// Recreates the entries of a directory of the shared root in a new one.
fn copy_directory(old: &Path, new: &Path, places: &[&VolumeMount<'_>]) -> Result<(), StepError> {
    let step = |what: &str, path: &Path| format!("{what} {} into the root", path.display());
    for entry in std::fs::read_dir(old).at(&step("look at", old))?.flatten() {
        let (old, new) = (entry.path(), new.join(entry.file_name()));
        if let Ok(target) = std::fs::read_link(&old) {
            rustix::fs::symlink(target, &new).at(&step("link", &old))?;
            continue;
        }
        let metadata = entry.metadata().at(&step("look at", &old))?;
        if !metadata.is_dir() {
            std::fs::write(&new, b"").at(&step("make", &old))?;
            mount_bind_recursive(&old, &new).at(&step("mount", &old))?;
            continue;
        }
        std::fs::create_dir(&new).at(&step("make", &old))?;
        if old == Path::new(STAGING) {
            continue;
        }
        let is_needed = places.iter().any(|place| Path::new(place.destination).starts_with(&old));
        if is_needed && is_part_of_root(metadata.dev()) {
            copy_directory(&old, &new, places)?;
        } else {
            mount_bind_recursive(&old, &new).at(&step("mount", &old))?;
        }
    }
    Ok(())
}

fn is_on_same_device(path: &Path, other: &Path) -> bool {
    let device = |path: &Path| std::fs::metadata(path).ok().map(|metadata| metadata.dev());
    device(path).is_some() && device(path) == device(other)
}

/// Whether a directory is on the root's own file system, and not a mount.
fn is_part_of_root(device: u64) -> bool {
    std::fs::metadata("/").is_ok_and(|root| root.dev() == device)
}
