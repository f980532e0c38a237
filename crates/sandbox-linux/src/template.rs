//! The root that every sandbox of a launcher starts from, built once.
//!
//! A process in a mount namespace of its own builds it on a small tmpfs, makes it the root and lets
//! the old one go. Each sandbox then copies this namespace, which holds a dozen mounts and nothing of
//! the host but what was put there; it needs no pivot and no unmount, which are the slow parts.
//!
//! The builder is also the first process of a PID namespace, so that the `/proc` it mounts belongs to
//! a namespace that is empty as soon as the builder is gone. The kernel lets an unprivileged namespace
//! mount a `/proc` of its own only where one is already visible; this empty one is there for that.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags};
use rustix::mount::{
    MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags, mount,
    mount_change, move_mount, open_tree, unmount,
};
use sandbox_core::Protection;

use crate::order::Config;
use crate::step::{AtStep, StepError};
use crate::syscall::{self, MountAttributes};

/// Where the new root is put together. It exists everywhere, and what it covers is hidden only in the
/// builder's own namespace, after everything needed from below it was opened.
const STAGE: &str = "/tmp";

/// Directories and files the program's own, per-run mounts go onto.
pub(crate) const MOUNT_POINTS: &[&str] =
    &["work", "tmp", "mnt", "dev", "dev/shm", "dev/pts", "proc", "etc"];

/// The devices a program may open.
pub(crate) const DEVICES: &[&str] =
    &["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// Leads to the terminal that a program made for itself, if it made one.
pub(crate) const OWN_TERMINAL: &str = "/dev/tty";

/// Top-level names that are part of `/usr` on a merged system and directories on others.
pub(crate) const SYSTEM: &[&str] = &["bin", "sbin", "lib", "lib32", "lib64", "libx32"];

/// Small host files whose contents programs expect, copied if they are there.
const COPIED: &[&str] = &[
    "/etc/ld.so.cache",
    "/etc/services",
    "/etc/protocols",
    "/etc/mime.types",
    "/etc/localtime",
    "/etc/timezone",
    "/etc/debian_version",
];

/// Host directories under `/etc` that toolchains need, shown read-only if they are there.
pub(crate) const SHOWN_IN_ETC: &[&str] =
    &["/etc/alternatives", "/etc/ssl/certs", "/etc/pki/tls/certs"];

pub(crate) const WRITTEN: &[(&str, &str)] = &[
    (
        "etc/passwd",
        "root:x:0:0:root:/:/usr/sbin/nologin\nsandbox:x:1000:1000:sandbox:/tmp:/bin/sh\nnobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n",
    ),
    ("etc/group", "root:x:0:\nsandbox:x:1000:\nnogroup:x:65534:\n"),
    ("etc/hosts", "127.0.0.1 localhost sandbox\n::1 localhost sandbox\n"),
    ("etc/hostname", "sandbox\n"),
    ("etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\n"),
    ("etc/resolv.conf", ""),
];

/// A detached copy of a host path, and where it goes.
struct Piece {
    tree: OwnedFd,
    inside: String,
    is_directory: bool,
}

/// Builds the root and makes it this process's. The caller is alone in new mount and PID namespaces.
pub(crate) fn build(config: &Config) -> Result<(), StepError> {
    // Nothing that happens here may reach the host's mounts.
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)
        .at("make the mounts private")?;
    let pieces = gather(config)?;
    let copies = read_copies();
    let links = read_links(SYSTEM);

    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    mount("tmpfs", STAGE, "tmpfs", flags, Some(c"size=16m,nr_inodes=4k,mode=755"))
        .at("mount the root's tmpfs")?;
    rustix::process::chdir(STAGE).at("enter the new root")?;
    for directory in MOUNT_POINTS {
        make_directory(directory)?;
    }
    for (path, contents) in WRITTEN {
        write_file(path, contents.as_bytes())?;
    }
    for (path, contents) in &copies {
        write_file(path, contents)?;
    }
    for (name, target) in &links {
        rustix::fs::symlink(target, *name).at("link a system directory")?;
    }
    for (name, target) in [
        ("fd", "/proc/self/fd"),
        ("stdin", "fd/0"),
        ("stdout", "fd/1"),
        ("stderr", "fd/2"),
        ("ptmx", "pts/ptmx"),
    ] {
        rustix::fs::symlink(target, format!("dev/{name}")).at("make a link in /dev")?;
    }
    let has_os_release = Path::new("/usr/lib/os-release").exists();
    if has_os_release {
        rustix::fs::symlink("../usr/lib/os-release", "etc/os-release").at("link os-release")?;
    }
    for piece in &pieces {
        attach(piece)?;
    }
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount("proc", "proc", "proc", flags, None).at("mount the empty /proc")?;
    become_root()
}

/// Opens everything that comes from the host, before the stage could hide any of it.
fn gather(config: &Config) -> Result<Vec<Piece>, StepError> {
    let mut pieces = Vec::new();
    let mut shown: Vec<String> = config.visible.clone();
    for name in SYSTEM {
        let path = Path::new("/").join(name);
        if path.is_dir() && !path.is_symlink() {
            shown.push(format!("/{name}"));
        }
    }
    if config.walls.has(Protection::FreshRoot) {
        shown.extend(SHOWN_IN_ETC.iter().map(ToString::to_string));
    } else {
        // As the host has them: what may be written there may be written here.
        for path in other_host_directories() {
            pieces.push(clone_tree(&path, syscall::MOUNT_NO_DEV)?);
        }
    }
    for path in shown {
        if Path::new(&path).exists() {
            pieces.push(clone_tree(&path, syscall::MOUNT_NO_DEV | syscall::MOUNT_READ_ONLY)?);
        }
    }
    for device in DEVICES.iter().chain([&OWN_TERMINAL]) {
        pieces.push(clone_tree(device, 0)?);
    }
    Ok(pieces)
}

/// With the fresh root off, everything else at the top of the host's tree is shown too.
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

fn clone_tree(path: &str, attributes: u64) -> Result<Piece, StepError> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_RECURSIVE;
    let tree = open_tree(CWD, path, flags).at(&format!("take {path} into the root"))?;
    let attributes =
        MountAttributes { set: attributes | syscall::MOUNT_NO_SUID, ..MountAttributes::default() };
    syscall::change_mount(tree.as_fd(), &attributes, true)
        .at(&format!("make {path} safe to show"))?;
    let is_directory = Path::new(path).is_dir();
    Ok(Piece { tree, inside: path.trim_start_matches('/').to_owned(), is_directory })
}

fn attach(piece: &Piece) -> Result<(), StepError> {
    if piece.is_directory {
        make_directory(&piece.inside)?;
    } else if !Path::new(&piece.inside).exists() {
        // Never over what is there: with the fresh root off it may be the host's own.
        write_file(&piece.inside, b"")?;
    }
    move_mount(&piece.tree, "", CWD, piece.inside.as_str(), MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)
        .at(&format!("attach /{}", piece.inside))
}

pub(crate) fn read_copies() -> Vec<(String, Vec<u8>)> {
    COPIED
        .iter()
        .filter_map(|path| {
            let contents = std::fs::read(path).ok()?;
            Some((path.trim_start_matches('/').to_owned(), contents))
        })
        .collect()
}

pub(crate) fn read_links(names: &[&'static str]) -> Vec<(&'static str, std::path::PathBuf)> {
    names
        .iter()
        .filter_map(|name| Some((*name, std::fs::read_link(Path::new("/").join(name)).ok()?)))
        .collect()
}

fn make_directory(path: &str) -> Result<(), StepError> {
    std::fs::create_dir_all(path).at(&format!("make /{path}"))
}

fn write_file(path: &str, contents: &[u8]) -> Result<(), StepError> {
    std::fs::write(path, contents).at(&format!("write /{path}"))
}

/// Makes the stage the root of this namespace, and lets the old one go.
fn become_root() -> Result<(), StepError> {
    syscall::pivot_root(c".", c".").at("make the new root the root")?;
    unmount(".", UnmountFlags::DETACH).at("let the host's root go")?;
    rustix::process::chdir("/").at("enter the new root")?;
    let root =
        rustix::fs::open("/", OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
            .at("open the new root")?;
    let read_only = MountAttributes { set: syscall::MOUNT_READ_ONLY, ..MountAttributes::default() };
    syscall::change_mount(root.as_fd(), &read_only, false).at("make the root read-only")
}
