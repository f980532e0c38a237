//! Inodes of a container's own, in place of the host's that its builder shows by bind mounts.
//!
//! What `private_root` does for our own sandboxes is done here from outside, once a container is there and before a
//! program runs in it: a read-only overlay goes over every directory that is shown, a node of the container's own over every
//! device. What they cover has no name inside any more. See docs/adr/0032-inodes-of-its-own.md.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use rustix::mount::{
    MountAttrFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags, move_mount, open_tree, unmount,
};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::device_nodes::{self, EMPTY_FILE};
use crate::mountinfo::{self, Mount};
use crate::private_root::read_only_overlay;
use crate::step::{AtStep as _, StepError};
use crate::syscall::{self, MountAttributes, OWN_DIRECTORY};
use crate::thread::on_a_thread;

/// A directory that every root has. What a single file is taken from is mounted there for a moment.
const STAGE: &str = "/mnt";

/// What a container shows of the host.
#[derive(Clone, Debug)]
pub struct Shown {
    /// Where it lies on the host: a directory or a file.
    pub host: PathBuf,
    /// Where it is shown.
    pub inside: PathBuf,
}

/// What a container has in common with the host, by where it is inside.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SharedInodes {
    /// Directories, with what is in them.
    pub directories: Vec<PathBuf>,
    /// Single files and devices.
    pub files: Vec<PathBuf>,
}

/// What goes over the things that are shown, attached nowhere yet.
#[derive(Default)]
struct Covers {
    /// Whole mounts, and where they go.
    mounts: Vec<(OwnedFd, PathBuf)>,
    /// One file each of a mount, and where it goes.
    files: Vec<(OwnedFd, OsString, PathBuf)>,
}

/// Covers what the container of this process shows. `empty` is a directory on the host with nothing in it. `unused` are files in the
/// container that nobody needs any more: they are replaced by an empty one.
pub fn cover(
    process: u32,
    shown: &[Shown],
    empty: &Path,
    unused: &'static [&'static str],
) -> io::Result<()> {
    let mut covers = Covers::default();
    let points = mountinfo::own()?.into_iter().map(|mount| mount.point).collect();
    for Shown { host, inside } in shown {
        covers.add(host, inside, &points, empty).map_err(io::Error::other)?;
    }
    let nodes = match device_nodes::make() {
        Ok(nodes) => Some(nodes),
        // Where we may make none, the container keeps those that it has.
        Err(StepError { cause: Errno::PERM, .. }) => None,
        Err(error) => return Err(io::Error::other(error)),
    };
    let namespace = File::open(format!("/proc/{process}/ns/mnt"))?;
    on_a_thread("sandbox-mount", move || {
        // Threads share their root and directory, and who does can go nowhere alone.
        syscall::unshare(OWN_DIRECTORY)?;
        move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Mount))?;
        covers.attach().map_err(io::Error::other)?;
        nodes.map_or(Ok(()), |nodes| attach_nodes(&nodes, unused)).map_err(io::Error::other)
    })
}

impl Covers {
    /// Makes what covers one thing that is shown, and everything that is mounted below it.
    fn add(
        &mut self,
        host: &Path,
        inside: &Path,
        points: &HashSet<PathBuf>,
        empty: &Path,
    ) -> Result<(), StepError> {
        let real = host.canonicalize().at(&format!("find {}", host.display()))?;
        let no_devices = MountAttrFlags::MOUNT_ATTR_NODEV;
        if !real.is_dir() {
            let parent = real.parent().zip(real.file_name());
            let Some((parent, name)) = parent.filter(|_| !points.contains(&real)) else {
                // A mount itself: no directory has it, and it stays as it is.
                return Ok(());
            };
            let overlay = read_only_overlay(parent, empty, no_devices)?;
            self.files.push((overlay, name.to_owned(), inside.to_owned()));
            return Ok(());
        }
        self.mounts.push((read_only_overlay(&real, empty, no_devices)?, inside.to_owned()));
        // In the order of their names: a mount comes after the one that it is on.
        let mut below: Vec<&PathBuf> =
            points.iter().filter(|point| point.starts_with(&real) && **point != real).collect();
        below.sort_unstable();
        for point in below {
            let place = inside.join(point.strip_prefix(&real).unwrap_or(point));
            if point.is_dir() {
                self.mounts.push((read_only_overlay(point, empty, no_devices)?, place));
            } else if mountinfo::is_file(point) {
                self.mounts.push((clone_file(point)?, place));
            }
        }
        Ok(())
    }

    /// Attaches everything in the mount namespace of this thread.
    fn attach(&self) -> Result<(), StepError> {
        for (mount, place) in &self.mounts {
            attach(mount, place)?;
        }
        for (mount, name, place) in &self.files {
            let attached = attach(mount, Path::new(STAGE))
                .and_then(|()| attach_one(&Path::new(STAGE).join(name), place));
            unmount(STAGE, UnmountFlags::DETACH).at("let the stage go")?;
            attached?;
        }
        Ok(())
    }
}

/// Puts device nodes over those that the container shows, and an empty file over those that are not used.
fn attach_nodes(nodes: &OwnedFd, unused: &'static [&'static str]) -> Result<(), StepError> {
    attach(nodes, Path::new(STAGE))?;
    let stage = Path::new(STAGE);
    let devices = device_nodes::names().filter(|(place, _)| Path::new(place).exists());
    let unused = unused.iter().map(|place| (*place, EMPTY_FILE));
    let attached = devices
        .chain(unused)
        .try_for_each(|(place, name)| attach_one(&stage.join(name), Path::new(place)));
    unmount(STAGE, UnmountFlags::DETACH).at("let the device nodes go")?;
    attached
}

/// Mounts one file of a mount that is attached at another place too.
fn attach_one(file: &Path, place: &Path) -> Result<(), StepError> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    let one = open_tree(CWD, file, flags).at(&format!("take {}", file.display()))?;
    attach(&one, place)
}

/// Attaches a detached mount. No link on the way is followed.
fn attach(mount: &OwnedFd, place: &Path) -> Result<(), StepError> {
    let step = || format!("attach the private {}", place.display());
    let flags = OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let place = rustix::fs::openat2(CWD, place, flags, Mode::empty(), resolve).at(&step())?;
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    move_mount(mount, "", &place, "", flags).at(&step())
}

/// A single file that is mounted on the host, to be shown as it is.
fn clone_file(host: &Path) -> Result<OwnedFd, StepError> {
    let step = || format!("take {} into a container", host.display());
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    let file = open_tree(CWD, host, flags).at(&step())?;
    let set = syscall::MOUNT_READ_ONLY | syscall::MOUNT_NO_SUID | syscall::MOUNT_NO_DEV;
    let attributes = MountAttributes { set, ..MountAttributes::default() };
    syscall::change_mount(file.as_fd(), &attributes, false).at(&step())?;
    Ok(file)
}

/// What a program in the container of this process can name that is on a file system of the host. Its root is not looked at, nor
/// are these places, which are its own though the host made them.
pub fn shared_with_host(process: u32, own: &[PathBuf]) -> io::Result<SharedInodes> {
    let inside = mountinfo::parse(&std::fs::read(format!("/proc/{process}/mountinfo"))?);
    let host: HashSet<Vec<u8>> = mountinfo::own()?.into_iter().map(|mount| mount.device).collect();
    let mut shared = SharedInodes::default();
    for place in visible_on(&host, &inside).filter(|place| !own.contains(place)) {
        let below = place.strip_prefix("/").unwrap_or(&place);
        let there = Path::new("/proc").join(process.to_string()).join("root").join(below);
        match there.symlink_metadata() {
            Ok(found) if found.is_dir() => shared.directories.push(place),
            Ok(_) => shared.files.push(place),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(shared)
}

/// Where these mounts show one of these file systems and no later mount lies over them. The root is left out.
fn visible_on<'a>(
    devices: &'a HashSet<Vec<u8>>,
    mounts: &'a [Mount],
) -> impl Iterator<Item = PathBuf> + 'a {
    let root = Path::new("/");
    mounts.iter().enumerate().filter_map(move |(number, mount)| {
        let mut later = mounts[number + 1..].iter().filter(|later| later.point != root);
        let is_hidden = later.any(|later| mount.point.starts_with(&later.point));
        let is_shared = mount.point != root && devices.contains(&mount.device);
        (is_shared && !is_hidden).then(|| mount.point.clone())
    })
}

/// Whether this process may make device nodes, found by trying.
pub fn can_make_devices() -> bool {
    !matches!(device_nodes::make(), Err(StepError { cause: Errno::PERM, .. }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nothing_covers_is_told() {
        let mount = |device: &str, point: &str| Mount {
            device: device.as_bytes().to_vec(),
            point: point.into(),
        };
        let host = HashSet::from([b"8:1".to_vec()]);
        let mounts = [
            mount("8:1", "/"),
            mount("8:1", "/usr"),
            mount("8:1", "/usr/lib/one"),
            mount("8:1", "/opt"),
            mount("0:9", "/tmp"),
            mount("0:40", "/usr"),
            mount("8:1", "/usr/lib/two"),
        ];
        let visible: Vec<PathBuf> = visible_on(&host, &mounts).collect();
        assert_eq!(visible, [Path::new("/opt"), Path::new("/usr/lib/two")]);
    }
}
