//! Mounts that only one command sees, for container runtimes that resolve paths with few
//! privileges.

use std::ffi::{CStr, CString};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::io::Errno;
use rustix::mount::{
    MountPropagationFlags, UnmountFlags, mount_bind_recursive, mount_change, unmount,
};

use crate::syscall::{self, NEW_MOUNT};

/// Makes a command start with each directory or file also mounted at its second path. The mounts
/// disappear with the last process that the command started.
pub fn give(command: &mut Command, shown: &[(PathBuf, PathBuf)]) -> io::Result<()> {
    let text = |path: &Path| CString::new(path.as_os_str().as_bytes()).map_err(io::Error::other);
    let shown: io::Result<Vec<(CString, CString)>> =
        shown.iter().map(|(host, place)| Ok((text(host)?, text(place)?))).collect();
    let shown = shown?;
    let mount = move || -> io::Result<()> {
        enter()?;
        for (host, place) in &shown {
            mount_bind_recursive(host.as_c_str(), place.as_c_str())?;
        }
        Ok(())
    };
    // SAFETY: between fork and exec the closure makes system calls with texts that were prepared before: it takes no lock
    // and allocates nothing.
    unsafe { command.pre_exec(mount) };
    Ok(())
}

/// Makes a command start without the mounts at these paths.
pub fn hide(command: &mut Command, places: &'static [&'static CStr]) {
    if places.is_empty() {
        return;
    }
    let unmount_all = move || -> io::Result<()> {
        enter()?;
        // Some hosts have several mounts on top of each other.
        places.iter().try_for_each(|place| {
            loop {
                match unmount(*place, UnmountFlags::DETACH) {
                    Ok(()) => {}
                    // The path does not exist, or nothing is mounted there any more.
                    Err(Errno::NOENT | Errno::INVAL) => return Ok(()),
                    Err(error) => return Err(error.into()),
                }
            }
        })
    };
    // SAFETY: between fork and exec the closure makes system calls with texts that are always there: it takes no lock and
    // allocates nothing.
    unsafe { command.pre_exec(unmount_all) };
}

/// Enters a private mount namespace: its mounts do not propagate to the host, but the host's
/// propagate to it.
fn enter() -> io::Result<()> {
    syscall::unshare(NEW_MOUNT)?;
    mount_change(c"/", MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_command_sees_them() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let directory = tempfile::tempdir().unwrap();
        let (host, place) = (directory.path().join("host"), directory.path().join("place"));
        std::fs::create_dir(&host).unwrap();
        std::fs::create_dir(&place).unwrap();
        std::fs::write(host.join("file"), "text").unwrap();
        let mut command = Command::new("cat");
        command.arg(place.join("file"));
        give(&mut command, &[(host, place.clone())]).unwrap();
        assert_eq!(command.output().unwrap().stdout, b"text");
        assert_eq!(std::fs::read_dir(place).unwrap().count(), 0);
    }

    #[test]
    fn what_is_hidden_is_hidden_from_the_command_alone() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let mut command = Command::new("cat");
        command.arg("/proc/version");
        assert!(command.output().unwrap().status.success());
        hide(&mut command, &[c"/proc", c"/nonexistent", c"/usr"]);
        assert!(!command.output().unwrap().status.success());
        assert!(Path::new("/proc/version").exists());
    }
}
