//! A root for each sandbox with the same content and inodes of its own.
//!
//! The template's mounts have the same inodes for every sandbox, and below `/usr` they are the
//! host's. Whoever can open an inode can watch it (inotify, dnotify) and lock it (`flock`, record
//! locks, leases), and can so observe and signal other sandboxes. Therefore each sandbox gets a
//! read-only overlay over every directory that is mounted in the template. Page cache and disk
//! blocks stay shared; inodes, watches and locks do not. See docs/adr/0032-inodes-of-its-own.md.
//!
//! The launcher creates the overlays, detached, before it clones an init, and init attaches them.
//! Init could create them too, but a superblock of the launcher's user namespace may have device
//! nodes, is out of reach for capabilities inside, and its memory is not charged to the program.

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

/// The mounts of the template, which all sandboxes share until they are covered.
pub(crate) struct SharedMounts {
    directories: Vec<PathBuf>,
    /// Single files, such as devices if this process may not create device nodes. An overlay cannot
    /// cover a file.
    files: Vec<PathBuf>,
}

/// Overlays for one sandbox, not attached yet.
pub(crate) struct PrivateRoot<'a> {
    root: OwnedFd,
    directories: Vec<(&'a Path, OwnedFd)>,
    files: &'a [PathBuf],
}

impl SharedMounts {
    /// Lists the mounts of the template, in which this process is. `processes` is a `/proc` that
    /// contains it.
    pub(crate) fn list(processes: BorrowedFd<'_>) -> Result<Self, StepError> {
        let step = "list the mounts of the template";
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let file = rustix::fs::openat(processes, "self/mountinfo", flags, Mode::empty());
        let mut text = Vec::new();
        std::io::Read::read_to_end(&mut std::fs::File::from(file.at(step)?), &mut text).at(step)?;
        let points = mountinfo::parse(&text).into_iter().map(|mount| mount.point);
        let covered = points.filter(|path| {
            // The root is covered separately. The others are empty, or a sandbox mounts its own
            // over them.
            let is_own =
                [Path::new("/"), Path::new("/proc"), Path::new(EMPTY)].contains(&path.as_path());
            // A path that another mount hides cannot be opened.
            !is_own && path.exists()
        });
        let (directories, files) = covered.partition(|path| path.is_dir());
        Ok(Self { directories, files })
    }

    /// Whether there is a mount that no overlay can cover.
    pub(crate) fn has_files(&self) -> bool {
        !self.files.is_empty()
    }

    /// Creates the overlays for one sandbox.
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
    /// Descriptors that must stay open until it is entered.
    pub(crate) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let directories = self.directories.iter().map(|(_, overlay)| overlay.as_fd());
        std::iter::once(self.root.as_fd()).chain(directories)
    }

    /// Makes it the root of this process, whose mount namespace is a copy of the template's.
    /// Returns the covered root, to which no path inside leads any more.
    pub(crate) fn enter(self) -> Result<OwnedFd, StepError> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let covered = rustix::fs::open("/", flags, Mode::empty()).at("open the template's root")?;
        attach(&self.root, Path::new("/"))?;
        // Mounting over the root does not change the root of a process.
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

/// A detached, read-only overlay over a directory. `empty` is an empty directory: an overlay
/// without an upper layer needs two lower ones.
pub(crate) fn read_only_overlay(
    lower: &Path,
    empty: &Path,
    attributes: MountAttrFlags,
) -> Result<OwnedFd, StepError> {
    let step = || format!("mount an overlay over {}", lower.display());
    let overlay = fsopen("overlay", FsOpenFlags::FSOPEN_CLOEXEC).at(&step())?;
    // The first layer determines owner, mode and times of the top directory.
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

/// Whether this kernel has overlayfs. Whether this process may mount one shows only when it tries.
pub fn is_available() -> bool {
    // Trying to create one loads the module, if the user may do so.
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
