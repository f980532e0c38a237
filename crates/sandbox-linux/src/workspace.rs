//! A workspace in a container: a file system that is mounted over its work directory before a
//! program runs, and read from outside afterwards.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Component, Path};
use std::time::Duration;

use rustix::fs::{Gid, Mode, OFlags, ResolveFlags, Uid, fchown, mkdirat, openat, openat2};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsconfig_set_string, fsmount,
    fsopen,
};

use crate::attach::Detached;
use crate::cgroup::Entry;
use crate::reexec;
use crate::rootfs::OWN_INODES;
use crate::step::{AtStep as _, StepError};
use crate::workspace_filler::BEGIN;

/// A work directory that is not mounted yet.
pub struct Workspace {
    work: OwnedFd,
    /// Its owner on the host.
    owner: u32,
}

impl Workspace {
    /// Creates one of this size, and a mount of it.
    pub fn make(bytes: u64, inodes: u64, owner: u32) -> Result<(Self, Detached), StepError> {
        let tmpfs = fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC).at("open a file system")?;
        let options = [
            ("size", bytes),
            ("nr_inodes", inodes + OWN_INODES),
            ("uid", owner.into()),
            ("gid", owner.into()),
        ];
        for (key, value) in options {
            fsconfig_set_string(&tmpfs, key, value.to_string()).at("describe the workspace")?;
        }
        fsconfig_set_string(&tmpfs, "mode", "755").at("describe the workspace")?;
        fsconfig_create(&tmpfs).at("make the workspace")?;
        let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
        let mount =
            fsmount(&tmpfs, FsMountFlags::FSMOUNT_CLOEXEC, attributes).at("mount the workspace")?;
        let work = openat(&mount, ".", DIRECTORY, Mode::empty()).at("open the workspace")?;
        Ok((Self { work, owner }, Detached::new(mount)))
    }

    /// The directory; also valid after the container is gone.
    pub fn directory(&self) -> BorrowedFd<'_> {
        self.work.as_fd()
    }

    /// Restores the saved content; false if the process was killed, as the kernel does for lack of
    /// memory. Memory is charged to the process that touches it first, so a process in the
    /// container's cgroup does this. It may get little CPU time there, so the wait is bounded.
    pub fn fill(&self, content: &File, cgroup: &Entry, timeout: Duration) -> io::Result<bool> {
        let (mut local, peer) = UnixStream::pair()?;
        local.set_read_timeout(Some(timeout))?;
        let work = self.work.try_clone()?;
        let mut filler = reexec::spawn_filler(content.try_clone()?, work, peer.into(), self.owner)?;
        let begun = cgroup.admit(filler.id()).map_err(io::Error::from);
        let begun = begun.and_then(|()| local.write_all(BEGIN));
        let mut message = String::new();
        let received = begun.and_then(|()| local.read_to_string(&mut message));
        if received.is_err() {
            let _ = filler.kill();
        }
        let status = filler.wait()?;
        received.map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => io::Error::other("it took too long"),
            _ => error,
        })?;
        match status.code() {
            Some(0) => Ok(true),
            None => Ok(false),
            Some(_) => Err(io::Error::other(message)),
        }
    }

    /// Creates a mount point for a volume in it. Links that an earlier program left are not
    /// followed.
    pub fn make_place(&self, below: &Path, is_directory: bool) -> Result<(), StepError> {
        let step = format!("attach the volume {}", below.display());
        let mut directory = self.work.try_clone().at(&step)?;
        let mut components = below.components().peekable();
        while let Some(component) = components.next() {
            let Component::Normal(name) = component else {
                return Err(Errno::INVAL).at(&step);
            };
            let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
            let is_file = components.peek().is_none() && !is_directory;
            let made = if is_file {
                let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
                openat(&directory, name, flags, Mode::from_raw_mode(0o644)).map(drop)
            } else {
                mkdirat(&directory, name, Mode::from_raw_mode(0o755))
            };
            let is_new = match made {
                Ok(()) => true,
                Err(Errno::EXIST) => false,
                error => return error.at(&step),
            };
            let flags = if is_file { OFlags::RDONLY | OFlags::CLOEXEC } else { DIRECTORY };
            let opened =
                openat2(&directory, name, flags | OFlags::NONBLOCK, Mode::empty(), resolve);
            let opened = opened.at(&step)?;
            if is_new {
                let (user, group) = (Uid::from_raw(self.owner), Gid::from_raw(self.owner));
                fchown(&opened, Some(user), Some(group)).at(&step)?;
            }
            directory = opened;
        }
        Ok(())
    }
}

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
