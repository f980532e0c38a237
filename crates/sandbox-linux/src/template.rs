//! The root template from which every sandbox of a launcher starts, built once.
//!
//! A process in a mount namespace of its own assembles it on a small tmpfs, makes it the root and
//! detaches the old one. Each sandbox copies this mount namespace, which has a dozen mounts and
//! nothing else of the host; it needs neither pivot_root nor umount, which are slow.
//!
//! The builder is also the first process of a PID namespace, so that the `/proc` it mounts belongs
//! to a namespace that is empty once the builder has exited. The kernel lets an unprivileged
//! namespace mount a `/proc` of its own only if one is already visible; the empty one serves that
//! purpose.

use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::{
    MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags, mount,
    mount_change, move_mount, open_tree, unmount,
};
use sandbox_core::Protection;

use crate::config::Config;
use crate::rootfs;
use crate::skeleton::{SYSTEM, Shown, Skeleton};
use crate::step::{AtStep, StepError};
use crate::syscall::{self, MountAttributes};

/// Where the new root is assembled. It exists on every host, and hides what is below it only in the
/// builder's namespace, after everything that is needed from there was opened.
const STAGING: &str = "/tmp";

/// The devices a program may open.
pub(crate) const DEVICES: &[&str] =
    &["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// Refers to the controlling terminal of the program, if it has one.
pub(crate) const OWN_TERMINAL: &str = "/dev/tty";

/// An empty directory on a file system of its own: the second layer of every read-only overlay.
pub(crate) const EMPTY: &str = rootfs::STAGING;

/// A detached copy of a host path, and its destination.
struct Piece {
    tree: OwnedFd,
    inside: PathBuf,
    is_directory: bool,
}

/// Builds the root and switches to it. The caller is alone in new mount and PID namespaces.
pub(crate) fn build(config: &Config) -> Result<(), StepError> {
    // Mounts made here must not propagate to the host.
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)
        .at("make the mounts private")?;
    let skeleton = match &*config.image {
        "" => Skeleton::of_host(),
        image => Skeleton::of_image(Path::new(image)).at("look at the image")?,
    };
    let pieces = gather(config, &skeleton)?;

    // With device nodes, if this process may create them: their inodes are then not the host's, and
    // an overlay covers them.
    mount("tmpfs", STAGING, "tmpfs", MountFlags::NOSUID, Some(c"size=16m,nr_inodes=16k,mode=755"))
        .at("mount the root's tmpfs")?;
    rustix::process::chdir(STAGING).at("enter the new root")?;
    skeleton.write(Path::new(".")).at("write the root")?;
    for (name, target) in [
        ("fd", "/proc/self/fd"),
        ("stdin", "fd/0"),
        ("stdout", "fd/1"),
        ("stderr", "fd/2"),
        ("ptmx", "pts/ptmx"),
    ] {
        rustix::fs::symlink(target, format!("dev/{name}")).at("make a link in /dev")?;
    }
    for piece in &pieces {
        attach(piece)?;
    }
    make_devices()?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount("proc", "proc", "proc", flags, None).at("mount the empty /proc")?;
    let empty = EMPTY.trim_start_matches('/');
    mount("tmpfs", empty, "tmpfs", flags, Some(c"size=4k,nr_inodes=4,mode=755"))
        .at("mount the empty directory")?;
    become_root()
}

/// Opens everything that is mounted, before the staging directory hides any of it.
fn gather(config: &Config, skeleton: &Skeleton) -> Result<Vec<Piece>, StepError> {
    let mut pieces = Vec::new();
    let has_fresh_root = config.protections.has(Protection::FreshRoot) || !config.image.is_empty();
    if !has_fresh_root {
        // Writable where the host's are.
        for path in other_host_directories() {
            pieces.push(clone_tree(Path::new(&path), Path::new(&path), syscall::MOUNT_NO_DEV)?);
        }
    }
    for Shown { host, inside, .. } in skeleton.shown() {
        if has_fresh_root || !inside.starts_with("/etc") {
            let attributes = syscall::MOUNT_NO_DEV | syscall::MOUNT_READ_ONLY;
            pieces.push(clone_tree(host, inside, attributes)?);
        }
    }
    Ok(pieces)
}

/// Creates the device nodes in the new root, or mounts the host's if this process may create none.
fn make_devices() -> Result<(), StepError> {
    for device in DEVICES.iter().chain([&OWN_TERMINAL]) {
        let step = || format!("make the device {device}");
        // The staging directory hides nothing of /dev.
        let found = rustix::fs::stat(*device).at(&step())?;
        let node = device.trim_start_matches('/');
        let mode = Mode::from_raw_mode(0o666);
        match rustix::fs::mknodat(CWD, node, FileType::CharacterDevice, mode, found.st_rdev) {
            Ok(()) => rustix::fs::chmod(node, mode).at(&step())?,
            Err(Errno::PERM) => attach(&clone_tree(Path::new(device), Path::new(device), 0)?)?,
            Err(error) => return Err(error).at(&step()),
        }
    }
    Ok(())
}

/// Without a fresh root, all other top-level directories of the host are mounted too.
fn other_host_directories() -> Vec<String> {
    let handled = ["usr", "proc", "sys", "dev", "tmp", "work", "mnt"];
    let Ok(entries) = std::fs::read_dir("/") else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| !handled.contains(&name.as_str()) && !SYSTEM.contains(&name.as_str()))
        .map(|name| format!("/{name}"))
        .collect()
}

fn clone_tree(host: &Path, inside: &Path, attributes: u64) -> Result<Piece, StepError> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_RECURSIVE;
    let path = host.display();
    let tree = open_tree(CWD, host, flags).at(&format!("take {path} into the root"))?;
    let attributes =
        MountAttributes { set: attributes | syscall::MOUNT_NO_SUID, ..MountAttributes::default() };
    syscall::change_mount(tree.as_fd(), &attributes, true)
        .at(&format!("make {path} safe to show"))?;
    let is_directory = host.is_dir();
    let inside = inside.strip_prefix("/").unwrap_or(inside).to_owned();
    Ok(Piece { tree, inside, is_directory })
}

fn attach(piece: &Piece) -> Result<(), StepError> {
    if piece.is_directory {
        make_directory(&piece.inside)?;
    } else if !piece.inside.exists() {
        // Never overwrite: without a fresh root it may be the host's own file.
        write_file(&piece.inside, b"")?;
    }
    move_mount(&piece.tree, "", CWD, &piece.inside, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)
        .at(&format!("attach /{}", piece.inside.display()))
}

fn make_directory(path: &Path) -> Result<(), StepError> {
    std::fs::create_dir_all(path).at(&format!("make /{}", path.display()))
}

fn write_file(path: &Path, contents: &[u8]) -> Result<(), StepError> {
    std::fs::write(path, contents).at(&format!("write /{}", path.display()))
}

/// Makes the staging directory the root of this namespace, and detaches the old one.
fn become_root() -> Result<(), StepError> {
    syscall::pivot_root(c".", c".").at("make the new root the root")?;
    unmount(".", UnmountFlags::DETACH).at("unmount the host's root")?;
    rustix::process::chdir("/").at("enter the new root")?;
    let root =
        rustix::fs::open("/", OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
            .at("open the new root")?;
    let read_only = MountAttributes { set: syscall::MOUNT_READ_ONLY, ..MountAttributes::default() };
    syscall::change_mount(root.as_fd(), &read_only, false).at("make the root read-only")
}
