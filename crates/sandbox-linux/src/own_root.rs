//! A root of a sandbox's own, for what is to be shown at places that the shared one does not have.
//!
//! The shared root is read-only and common to all sandboxes. So another one is put together from the
//! same parts, with the places in it: what was one mount is one mount again, and a directory in which
//! a place is needed is made anew, with everything it holds.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Mode, Timespec, Timestamps};
use rustix::mount::{
    MountFlags, UnmountFlags, mount, mount_bind_recursive, mount_remount, unmount,
};
use sandbox_protocol::exec::VolumeMount;

use crate::place::{STAGE, below_writable, make_mount_point};
use crate::step::{AtStep, StepError};
use crate::syscall;

/// Makes places for volumes outside the writable directories, if there are any.
pub(crate) fn make_for(volumes: &[VolumeMount<'_>]) -> Result<(), StepError> {
    let outside = volumes.iter().filter(|volume| !below_writable(volume.destination));
    let places: Vec<&VolumeMount<'_>> = outside.collect();
    if places.is_empty() {
        return Ok(());
    }
    rustix::process::umask(Mode::from_raw_mode(0o022));
    let stage = Path::new(STAGE);
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
        // What is a mount was not made here, and may be read-only.
        above.filter(|path| is_on_same_device(path, stage)).try_for_each(age)?;
    }
    rustix::process::chdir(stage).at("enter the root for the volumes")?;
    syscall::pivot_root(c".", c".").at("make the root for the volumes the root")?;
    unmount(".", UnmountFlags::DETACH).at("let the shared root go")?;
    rustix::process::chdir("/").at("enter the root")?;
    mount_remount("/", flags | MountFlags::BIND | MountFlags::RDONLY, c"")
        .at("make the root read-only")
}

/// Gives a directory that we made the same time in every sandbox: when this one was prepared is nobody's
/// business.
fn age(directory: &Path) -> Result<(), StepError> {
    /// The first moment of the year 2000, as layers have it.
    const LONG_AGO: Timespec = Timespec { tv_sec: 946_684_800, tv_nsec: 0 };
    let times = Timestamps { last_access: LONG_AGO, last_modification: LONG_AGO };
    rustix::fs::utimensat(CWD, directory, &times, AtFlags::empty())
        .at(&format!("set the time of {}", directory.display()))
}

/// Puts everything that a directory of the shared root holds into a new one.
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
        if old == Path::new(STAGE) {
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

/// Whether a directory is on the root's own file system, and not a mount of its own.
fn is_part_of_root(device: u64) -> bool {
    std::fs::metadata("/").is_ok_and(|root| root.dev() == device)
}
