//! A workspace in a container that somebody else built: a file system of our own, put over its work directory before a
//! program runs there, and read from out here afterwards.

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
use rustix::process::{Signal, set_parent_process_death_signal};

use crate::attach::Detached;
use crate::cgroup::Entry;
use crate::place::OWN_INODES;
use crate::reexec;
use crate::snapshot::lay_out;
use crate::step::{AtStep as _, StepError};

/// The word that lets a filler begin.
const BEGIN: &[u8] = b"b";

/// A work directory that is nowhere yet.
pub struct Workspace {
    work: OwnedFd,
    /// Who it belongs to, as the host has it.
    owner: u32,
}

impl Workspace {
    /// One of this size, and the mount of it.
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

    /// The directory, also when the container is gone.
    pub fn directory(&self) -> BorrowedFd<'_> {
        self.work.as_fd()
    }

    /// Fills it with what was kept; false if whoever did was killed, as the kernel does for want of memory. Memory counts as
    /// that of whoever touches it first, so this is done by a process that is in the cgroup by then. It may have little of a
    /// processor there, and is not waited for for ever.
    pub fn fill(&self, content: &File, cgroup: &Entry, patience: Duration) -> io::Result<bool> {
        let (mut ours, theirs) = UnixStream::pair()?;
        ours.set_read_timeout(Some(patience))?;
        let work = self.work.try_clone()?;
        let mut filler =
            reexec::spawn_filler(content.try_clone()?, work, theirs.into(), self.owner)?;
        let begun = cgroup.admit(filler.id()).map_err(io::Error::from);
        let begun = begun.and_then(|()| ours.write_all(BEGIN));
        let mut complaint = String::new();
        let heard = begun.and_then(|()| ours.read_to_string(&mut complaint));
        if heard.is_err() {
            let _ = filler.kill();
        }
        let status = filler.wait()?;
        heard.map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => io::Error::other("it took too long"),
            _ => error,
        })?;
        match status.code() {
            Some(0) => Ok(true),
            None => Ok(false),
            Some(_) => Err(io::Error::other(complaint)),
        }
    }

    /// Makes a place below it for a volume. Links that an earlier program left are not followed.
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

/// The filler: waits to be told, and fills. It has the content as standard input, the directory as standard output, and
/// talks on the third descriptor.
pub(crate) fn fill_as_told(owner: u32) -> io::Result<()> {
    // Nobody else sees to its end.
    set_parent_process_death_signal(Some(Signal::KILL))?;
    let mut word = [0; BEGIN.len()];
    if rustix::io::read(rustix::stdio::stderr(), &mut word)? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let content = File::from(rustix::io::dup(rustix::stdio::stdin())?);
    lay_out(content, rustix::stdio::stdout(), owner)
}
