//! Device nodes on a file system of their own, so that their inodes are shared with no one.

use std::os::fd::{AsFd as _, OwnedFd};

use rustix::fs::{AtFlags, FileType, Mode};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsconfig_set_string, fsmount,
    fsopen,
};

use crate::step::{AtStep, StepError};
use crate::syscall::{self, MountAttributes};
use crate::template::{DEVICES, OWN_TERMINAL};

/// An empty file beside the devices.
pub(crate) const EMPTY_FILE: &str = "empty";

/// The devices that a program may open, and the names of their nodes on the file system.
pub(crate) fn names() -> impl Iterator<Item = (&'static str, &'static str)> {
    let devices = DEVICES.iter().chain([&OWN_TERMINAL]);
    devices.map(|path| (*path, path.trim_start_matches("/dev/")))
}

/// Creates a detached read-only file system with these device nodes.
pub(crate) fn make() -> Result<OwnedFd, StepError> {
    let step = "make device nodes";
    let opened = fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC).at(step)?;
    for (key, value) in [("size", "64k"), ("nr_inodes", "16"), ("mode", "755")] {
        fsconfig_set_string(&opened, key, value).at(step)?;
    }
    fsconfig_create(&opened).at(step)?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    let mount = fsmount(&opened, FsMountFlags::FSMOUNT_CLOEXEC, attributes).at(step)?;
    for (path, name) in names() {
        let found = rustix::fs::stat(path).at(step)?;
        // Independent of the umask.
        let mode = Mode::from_raw_mode(0o666);
        let kind = FileType::CharacterDevice;
        rustix::fs::mknodat(&mount, name, kind, mode, found.st_rdev).at(step)?;
        rustix::fs::chmodat(&mount, name, mode, AtFlags::empty()).at(step)?;
    }
    // Not opened: a process that another thread is starting would have the descriptor until it
    // execs, and a mount with a file that is open for writing cannot become read-only.
    let mode = Mode::from_raw_mode(0o444);
    rustix::fs::mknodat(&mount, EMPTY_FILE, FileType::RegularFile, mode, 0).at(step)?;
    let read_only = MountAttributes { set: syscall::MOUNT_READ_ONLY, ..MountAttributes::default() };
    syscall::change_mount(mount.as_fd(), &read_only, false).at(step)?;
    Ok(mount)
}
