//! Mounts volumes into a running container from outside, before a program runs in it: container
//! runtimes cannot map their owners.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use rustix::mount::{MoveMountFlags, move_mount};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use sandbox_protocol::launcher::{SymlinkPolicy, VolumeOwner};

use crate::step::{AtStep as _, StepError};
use crate::syscall::{self, OWN_DIRECTORY};
use crate::thread::on_a_thread;
use crate::volume;

/// A mount that is not attached yet.
pub struct Detached(OwnedFd);

impl Detached {
    pub(crate) fn new(mount: OwnedFd) -> Self {
        Self(mount)
    }
}

/// Opens a mount of a resolved host path. Its owner on the host is mapped to the program's user,
/// `program`.
pub fn detached(host: &Path, writable: bool, program: u32) -> Result<Detached, StepError> {
    let path = host.to_str().ok_or(Errno::ILSEQ).at("read a volume's path as text")?;
    let found = std::fs::symlink_metadata(host).at(&format!("look at the volume {path}"))?;
    let owner = VolumeOwner { user: found.uid(), group: found.gid(), program };
    volume::open(path, SymlinkPolicy::Refuse, writable, Some(owner)).map(Detached)
}

/// Attaches mounts at existing paths in the container of this process.
pub fn attach(process: u32, mounts: Vec<(Detached, PathBuf)>) -> io::Result<()> {
    let namespace = File::open(format!("/proc/{process}/ns/mnt"))?;
    on_a_thread("sandbox-mount", move || {
        // A thread that shares its root and directory with others cannot enter a mount namespace.
        syscall::unshare(OWN_DIRECTORY)?;
        move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Mount))?;
        for (mount, place) in &mounts {
            let flags = OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW;
            let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
            let place = rustix::fs::openat2(CWD, place, flags, Mode::empty(), resolve)?;
            let flags =
                MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
            move_mount(&mount.0, "", &place, "", flags)?;
        }
        Ok(())
    })
}
