//! The file systems that init sets up in a fresh sandbox: `/proc`, the writable directories, input
//! files and volumes. Every path here is resolved inside the sandbox's own root, before any program
//! runs in it.

use std::ffi::CString;
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{CWD, Gid, Mode, OFlags, ResolveFlags, Uid};
use rustix::mount::{MountFlags, MoveMountFlags, mount, mount_bind, mount_remount, move_mount};
use sandbox_core::Protection;
use sandbox_protocol::exec::{ExecRequest, VolumeMount, WorkspaceMount};

use crate::protection_set::ProtectionSet;
use crate::snapshot;
use crate::step::{AtStep, StepError};

/// The work directory.
pub(crate) const WORK: &str = "/work";
/// Directories that the program may write to.
pub(crate) const WRITABLE: &[&str] = &[WORK, "/tmp", "/dev/shm"];
/// Pseudo-terminals.
pub(crate) const TERMINALS: &str = "/dev/pts";
/// The program's user and group inside.
pub(crate) const INSIDE_ID: u32 = 1000;
/// An empty directory in which another root can be assembled.
pub(crate) const STAGING: &str = "/mnt";
/// Factor for the size of the writable file system if the disk limit is off.
const UNLIMITED_DISK_FACTOR: u64 = 16;
/// Inodes of the directories created here, which must not count against the program.
pub(crate) const OWN_INODES: u64 = 9;

/// Mounts a `/proc` of this PID namespace: only processes, and only the user's own.
pub(crate) fn mount_proc(protections: ProtectionSet) -> Result<(), StepError> {
    if !protections.has(Protection::PidNamespace) {
        // Only a process of a new PID namespace could mount it.
        return Ok(());
    }
    let options = if protections.has(Protection::PrivateProc) {
        c"subset=pid,hidepid=invisible"
    } else {
        c""
    };
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount("proc", "/proc", "proc", flags, Some(options)).at("mount /proc")
}

/// Mounts pseudo-terminals of the sandbox's own. Their number is limited, because the host has a
/// limit for all.
pub(crate) fn mount_terminals() -> Result<(), StepError> {
    let flags = MountFlags::NOSUID | MountFlags::NOEXEC;
    let options = c"newinstance,ptmxmode=0666,mode=0620,max=16";
    mount("devpts", TERMINALS, "devpts", flags, Some(options)).at("mount the terminals")
}

/// Mounts one tmpfs for everything that the program can write, so that one size limits it all. Its
/// top directory is not reachable: the last mount covers it. Returns a directory on it that the
/// program cannot see.
pub(crate) fn mount_writable(
    size: DiskSize,
    protections: ProtectionSet,
) -> Result<OwnedFd, StepError> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    mount("tmpfs", "/tmp", "tmpfs", flags, Some(size.options(protections).as_c_str()))
        .at("mount the writable file system")?;
    rustix::fs::mkdir("/tmp/copies", Mode::from_raw_mode(0o700))
        .at("create the directory for upper layers")?;
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let upper_layers = rustix::fs::open("/tmp/copies", flags, Mode::empty())
        .at("open the directory for upper layers")?;
    for (name, mode, target) in
        [("/tmp/work", 0o755, WORK), ("/tmp/shm", 0o1777, "/dev/shm"), ("/tmp/tmp", 0o1777, "/tmp")]
    {
        rustix::fs::mkdir(name, Mode::from_raw_mode(mode)).at("make a writable directory")?;
        if target == WORK {
            give_to_program(name)?;
        }
        mount_bind(name, target).at(&format!("attach {target}"))?;
    }
    Ok(upper_layers)
}

/// Mounts a file system of the workspace's size over the work directory, and restores the saved
/// content. Returns the new work directory.
pub(crate) fn mount_workspace(
    workspace: WorkspaceMount,
    content: Option<OwnedFd>,
    protections: ProtectionSet,
) -> Result<OwnedFd, StepError> {
    let size = DiskSize { bytes: workspace.bytes, inodes: workspace.inodes };
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    mount("tmpfs", WORK, "tmpfs", flags, Some(size.options(protections).as_c_str()))
        .at("mount the workspace")?;
    give_to_program(WORK)?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let work = rustix::fs::open(WORK, flags, Mode::empty()).at("open the workspace")?;
    if let Some(content) = content {
        snapshot::restore(content.into(), work.as_fd(), INSIDE_ID).at("fill the workspace")?;
    }
    Ok(work)
}

/// Changes the size of the writable file system.
pub(crate) fn resize_writable(size: DiskSize, protections: ProtectionSet) -> Result<(), StepError> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    mount_remount(WORK, flags, size.options(protections).as_c_str())
        .at("set the size of the writable file system")
}

/// The size of the writable file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DiskSize {
    pub(crate) bytes: u64,
    pub(crate) inodes: u64,
}

impl DiskSize {
    fn options(self, protections: ProtectionSet) -> CString {
        let factor = if protections.has(Protection::Disk) { 1 } else { UNLIMITED_DISK_FACTOR };
        let options = format!(
            "size={},nr_inodes={},mode=755",
            self.bytes.saturating_mul(factor),
            (self.inodes + OWN_INODES).saturating_mul(factor)
        );
        CString::new(options).expect("numbers contain no zero byte")
    }
}

pub(crate) fn give_to_program(path: &str) -> Result<(), StepError> {
    rustix::fs::chown(path, Some(Uid::from_raw(INSIDE_ID)), Some(Gid::from_raw(INSIDE_ID)))
        .at(&format!("give {path} to the program"))
}

/// What happens to a file that is in the place of an input file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Existing {
    /// It is an error.
    Refuse,
    /// It is removed.
    Replace,
}

/// Writes the input files. Their paths were validated with the request. If programs may have written
/// to the directory, the caller has no more rights than they.
pub(crate) fn write_files(request: &ExecRequest<'_>, existing: Existing) -> Result<(), StepError> {
    for file in &request.files {
        let path = format!("{WORK}/{}", file.path);
        make_directories(&path)?;
        let mode = if file.executable { 0o755 } else { 0o644 };
        let flags =
            OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let step = || format!("place the file {}", file.path);
        if existing == Existing::Replace {
            match rustix::fs::unlink(&path) {
                Ok(()) | Err(rustix::io::Errno::NOENT) => {}
                Err(error) => return Err(error).at(&step()),
            }
        }
        let handle = rustix::fs::open(&path, flags, Mode::from_raw_mode(mode)).at(&step())?;
        let mut handle = std::fs::File::from(handle);
        handle.write_all(file.contents).at(&step())?;
        rustix::fs::fchown(&handle, Some(Uid::from_raw(INSIDE_ID)), Some(Gid::from_raw(INSIDE_ID)))
            .at(&step())?;
    }
    if !request.directory.is_empty() {
        make_directories(&format!("{WORK}/{}/x", request.directory))?;
    }
    Ok(())
}

/// Removes the files of a request, and the directories that were created for them.
pub(crate) fn remove_files(request: &ExecRequest<'_>) -> Result<(), StepError> {
    for file in &request.files {
        let step = || format!("remove the file {}", file.path);
        rustix::fs::unlink(format!("{WORK}/{}", file.path)).at(&step())?;
        for directory in Path::new(file.path).ancestors().skip(1) {
            // A directory that is not empty is removed with its last file.
            if directory.as_os_str().is_empty()
                || rustix::fs::rmdir(Path::new(WORK).join(directory)).is_err()
            {
                break;
            }
        }
    }
    Ok(())
}

/// Creates the parent directories of a path in the work directory, owned by the program.
fn make_directories(path: &str) -> Result<(), StepError> {
    let mut end = WORK.len();
    while let Some(next) = path[end + 1..].find('/') {
        end += 1 + next;
        let directory = &path[..end];
        match rustix::fs::mkdir(directory, Mode::from_raw_mode(0o755)) {
            Ok(()) => give_to_program(directory)?,
            Err(rustix::io::Errno::EXIST) => {}
            Err(error) => return Err(error).at(&format!("make the directory {directory}")),
        }
    }
    Ok(())
}

/// Attaches the volumes.
pub(crate) fn mount_volumes(
    volumes: &[VolumeMount<'_>],
    trees: &[OwnedFd],
) -> Result<(), StepError> {
    for (volume, tree) in volumes.iter().zip(trees) {
        let step = format!("attach the volume {}", volume.destination);
        let from = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
        if !below_writable(volume.destination) {
            move_mount(tree, "", CWD, volume.destination, from).at(&step)?;
            continue;
        }
        make_mount_point(Path::new(volume.destination), volume.is_directory)?;
        // A workspace may contain a link there, left by an earlier program to redirect the volume.
        let place = rustix::fs::openat2(
            CWD,
            volume.destination,
            OFlags::PATH | OFlags::CLOEXEC,
            Mode::empty(),
            ResolveFlags::NO_SYMLINKS,
        );
        let onto = from | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
        move_mount(tree, "", place.at(&step)?, "", onto).at(&step)?;
    }
    Ok(())
}

pub(crate) fn below_writable(path: &str) -> bool {
    WRITABLE.iter().any(|place| Path::new(path).starts_with(place))
}

pub(crate) fn make_mount_point(path: &Path, is_directory: bool) -> Result<(), StepError> {
    let step = format!("make a place for the volume {}", path.display());
    let parent = path.parent().unwrap_or(Path::new("/"));
    std::fs::create_dir_all(if is_directory { path } else { parent }).at(&step)?;
    if !is_directory && !path.exists() {
        std::fs::write(path, b"").at(&step)?;
    }
    Ok(())
}
