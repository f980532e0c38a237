//! A root of each sandbox's own: the same contents, other inodes.
//!
//! The template's mounts are one set of inodes for every sandbox, and below `/usr` they are the host's own. Whoever
//! can open an inode can watch it (inotify, dnotify) and lock it (`flock`, record locks, leases), and so learns what
//! others do with it, and tells them something. So each sandbox gets a read-only overlay over every directory that is
//! mounted in the template. Page cache and disk blocks stay shared; inodes, watches and locks do not. See
//! docs/adr/0032-inodes-of-its-own.md.
//!
//! The launcher makes the overlays, detached, before it clones an init; init attaches them. Init could make them too, but
//! a superblock of the launcher's user namespace may have device nodes, is out of reach for capabilities that are held
//! inside, and its memory is not charged to the program.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, OpenTreeFlags, fsconfig_create,
    fsconfig_set_string, fsmount, fsopen, move_mount, open_tree,
};

use crate::mountinfo;
use crate::step::{AtStep, StepError};
use crate::template::EMPTY;

/// What is mounted in the template, and so shared by all sandboxes until it is covered.
pub(crate) struct SharedMounts {
    directories: Vec<PathBuf>,
    /// Single files, such as devices where this process may make no nodes. An overlay cannot cover a file.
    files: Vec<PathBuf>,
}

/// Overlays for one sandbox that are attached nowhere yet.
pub(crate) struct PrivateRoot<'a> {
    root: OwnedFd,
    directories: Vec<(&'a Path, OwnedFd)>,
    files: &'a [PathBuf],
}

impl SharedMounts {
    /// Lists the mounts of the template, which this process is in. `processes` is a `/proc` in which it is listed.
    pub(crate) fn list(processes: BorrowedFd<'_>) -> Result<Self, StepError> {
        let step = "list the mounts of the template";
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let file = rustix::fs::openat(processes, "self/mountinfo", flags, Mode::empty());
        let mut text = Vec::new();
        std::io::Read::read_to_end(&mut std::fs::File::from(file.at(step)?), &mut text).at(step)?;
        let points = mountinfo::parse(&text).into_iter().map(|mount| mount.point);
        let covered = points.filter(|path| {
            // The root is covered by itself. The others are empty, or a sandbox mounts its own over them.
            let is_own =
                [Path::new("/"), Path::new("/proc"), Path::new(EMPTY)].contains(&path.as_path());
            // What another mount hides cannot be named.
            !is_own && path.exists()
        });
        let (directories, files) = covered.partition(|path| path.is_dir());
        Ok(Self { directories, files })
    }

    /// Whether there is one that no overlay covers.
    pub(crate) fn has_files(&self) -> bool {
        !self.files.is_empty()
    }

    /// Makes the overlays for one sandbox.
    pub(crate) fn cover(&self) -> Result<PrivateRoot<'_>, StepError> {
        let overlays = self.directories.iter().map(|path| {
            let nodes = MountAttrFlags::MOUNT_ATTR_NODEV;
            Ok((path.as_path(), read_only_overlay(path, Path::new(EMPTY), nodes)?))
        });
        Ok(PrivateRoot {
            root: read_only_overlay(Path::new("/"), Path::new(EMPTY), MountAttrFlags::empty())?,
            directories: overlays.collect::<Result<_, StepError>>()?,
            files: &self.files,
        })
    }
}

impl PrivateRoot<'_> {
    /// The descriptors that must stay open until it is entered.
    pub(crate) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let directories = self.directories.iter().map(|(_, overlay)| overlay.as_fd());
        std::iter::once(self.root.as_fd()).chain(directories)
    }

    /// Makes it the root of this process, whose mount namespace is a copy of the template's. Returns the root that it
    /// covers, which nothing inside can name any more.
    pub(crate) fn enter(self) -> Result<OwnedFd, StepError> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let covered = rustix::fs::open("/", flags, Mode::empty()).at("open the template's root")?;
        attach(&self.root, Path::new("/"))?;
        // The root of a process stays where it was when something is mounted over it.
        rustix::process::fchdir(&self.root).at("enter the private root")?;
        rustix::process::chroot(".").at("make the private root the root")?;
        for (path, overlay) in &self.directories {
            attach(overlay, path)?;
        }
        for path in self.files {
            let below = path.strip_prefix("/").unwrap_or(path);
            let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
            let file = open_tree(&covered, below, flags)
                .at(&format!("take {} into the private root", path.display()))?;
            attach(&file, path)?;
        }
        Ok(covered)
    }
}

/// Attaches a detached mount.
fn attach(mount: &OwnedFd, path: &Path) -> Result<(), StepError> {
    move_mount(mount, "", CWD, path, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)
        .at(&format!("attach the private {}", path.display()))
}

/// A detached overlay over a directory, through which nothing can be written. `empty` is a directory with nothing in it: an overlay
/// without a writable layer needs two others.
pub(crate) fn read_only_overlay(
    lower: &Path,
    empty: &Path,
    attributes: MountAttrFlags,
) -> Result<OwnedFd, StepError> {
    let step = || format!("mount an overlay over {}", lower.display());
    let overlay = fsopen("overlay", FsOpenFlags::FSOPEN_CLOEXEC).at(&step())?;
    // The first one gives the top directory its owner, mode and times.
    let layers = [escape(lower), escape(empty)].join(&b':');
    fsconfig_set_string(&overlay, "lowerdir", layers).at(&step())?;
    fsconfig_create(&overlay).at(&step())?;
    let attributes =
        attributes | MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_RDONLY;
    fsmount(&overlay, FsMountFlags::FSMOUNT_CLOEXEC, attributes).at(&step())
}

/// Colons separate layers.
fn escape(path: &Path) -> Vec<u8> {
    let bytes = path.as_os_str().as_bytes().iter();
    bytes
        .flat_map(|byte| matches!(byte, b':' | b'\\').then_some(b'\\').into_iter().chain([*byte]))
        .collect()
}

/// Whether this kernel has overlays. A host that has them and does not let us mount one fails when it is tried.
pub fn is_available() -> bool {
    // Asking to make one loads the module, for whoever may do so.
    match fsopen("overlay", FsOpenFlags::FSOPEN_CLOEXEC) {
        Ok(_) => true,
        Err(Errno::NODEV) => false,
        Err(_) => std::fs::read_to_string("/proc/filesystems")
            .is_ok_and(|kinds| kinds.lines().any(|line| line.ends_with("\toverlay"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separators_in_paths_are_escaped() {
        assert_eq!(escape(Path::new("/a:b\\c")), b"/a\\:b\\\\c");
    }
}
