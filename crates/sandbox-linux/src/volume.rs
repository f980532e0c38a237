//! Mounts of host directories, opened by a process that sees the host and may mount: the launcher,
//! or the supervisor for containers.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use rustix::mount::{OpenTreeFlags, open_tree};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{
    Signal, WaitId, WaitIdOptions, pidfd_send_signal, set_parent_process_death_signal, waitid,
};
use sandbox_protocol::launcher::{SymlinkPolicy, VolumeOwner};

use crate::step::{AtStep, StepError};
use crate::syscall::{self, Cloned, MountAttributes};

/// Opens a detached mount of a host path, to be moved into a sandbox.
///
/// The path is opened once. A link at its end is never followed, others only if the policy allows
/// it, and the mount is created from the opened descriptor: nothing can be swapped in between.
pub(crate) fn open(
    path: &str,
    symlinks: SymlinkPolicy,
    writable: bool,
    owner: Option<VolumeOwner>,
) -> Result<OwnedFd, StepError> {
    let step = |what: &str| format!("{what} the volume {path}");
    let resolve = match symlinks {
        SymlinkPolicy::Follow => ResolveFlags::NO_MAGICLINKS,
        SymlinkPolicy::Refuse => ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_SYMLINKS,
    };
    let place = rustix::fs::openat2(
        CWD,
        path,
        OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW,
        Mode::empty(),
        resolve,
    )
    .at(&step("open"))?;
    let found = rustix::fs::fstat(&place).at(&step("look at"))?;
    match FileType::from_raw_mode(found.st_mode) {
        FileType::Directory | FileType::RegularFile => {}
        // A socket, device or link would give access to more than files.
        _ => return Err(Errno::NOTDIR).at(&step("share")),
    }
    // The directory was replaced by one with another owner.
    if owner.is_some_and(|owner| (owner.user, owner.group) != (found.st_uid, found.st_gid)) {
        return Err(Errno::STALE).at(&step("find the owner of"));
    }
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_EMPTY_PATH
        | OpenTreeFlags::AT_RECURSIVE;
    let tree = open_tree(&place, "", flags).at(&step("clone"))?;
    let mut attributes = MountAttributes {
        set: syscall::MOUNT_NO_SUID | syscall::MOUNT_NO_DEV,
        ..MountAttributes::default()
    };
    if !writable {
        attributes.set |= syscall::MOUNT_READ_ONLY;
    }
    syscall::change_mount(tree.as_fd(), &attributes, true).at(&step("restrict"))?;
    if let Some(owner) = owner {
        match map_owner(&tree, owner) {
            Ok(()) => {}
            // Some file systems do not support ID mapping. Reading then follows the permissions as
            // they are; writing would create files with an unmapped owner.
            Err(error) if error.cause == Errno::INVAL && !writable => {}
            Err(error) => return Err(error),
        }
    }
    Ok(tree)
}

fn map_owner(tree: &OwnedFd, owner: VolumeOwner) -> Result<(), StepError> {
    let namespace = user_namespace_mapping(owner)?;
    let mapped = MountAttributes {
        set: syscall::MOUNT_ID_MAPPED,
        user_namespace: namespace.as_raw_fd().unsigned_abs().into(),
        ..MountAttributes::default()
    };
    syscall::change_mount(tree.as_fd(), &mapped, false).at("map the owner of a volume")
}

/// A user namespace that maps the ID on disk to the sandbox's ID; a mount takes its mapping from
/// it.
fn user_namespace_mapping(owner: VolumeOwner) -> Result<OwnedFd, StepError> {
    let (peer, local) = pipe_with(PipeFlags::CLOEXEC).at("connect the holder of a mapping")?;
    // SAFETY: the child makes system calls and nothing else: it takes no lock that another thread could have.
    match unsafe { syscall::clone_process(syscall::NEW_USER, None) }
        .at("clone a mapping's holder")?
    {
        Cloned::Child => {
            drop(local);
            // Until it is killed, or the other end is closed.
            let _ = set_parent_process_death_signal(Some(Signal::KILL));
            let _ = rustix::io::read(&peer, &mut [0]);
            syscall::exit_now(0)
        }
        Cloned::Parent(pid, process) => {
            drop(peer);
            let written = [("uid_map", owner.user), ("gid_map", owner.group)]
                .into_iter()
                .try_for_each(|(name, outside)| {
                    let map = format!("{outside} {} 1\n", owner.program);
                    std::fs::write(format!("/proc/{pid}/{name}"), map)
                });
            let namespace = written
                .and_then(|()| std::fs::File::open(format!("/proc/{pid}/ns/user")))
                .at("map the owner of a volume");
            drop(local);
            // If several threads do this at once, each of their children may inherit the others'
            // ends.
            let _ = pidfd_send_signal(&process, Signal::KILL);
            let _ = waitid(WaitId::PidFd(process.as_fd()), WaitIdOptions::EXITED);
            namespace.map(OwnedFd::from)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// The error for a path that is refused before anything is mounted.
    fn refusal(path: &std::path::Path, links: SymlinkPolicy, owner: Option<VolumeOwner>) -> Errno {
        open(path.to_str().unwrap(), links, false, owner).expect_err("it is refused").cause
    }

    #[test]
    fn no_link_is_followed_on_a_path_that_was_resolved() {
        let place = tempfile::tempdir().unwrap();
        let place = place.path().canonicalize().unwrap();
        std::fs::create_dir_all(place.join("real/sub")).unwrap();
        symlink("real", place.join("link")).unwrap();
        symlink("sub", place.join("real/last")).unwrap();
        assert_eq!(refusal(&place.join("link/sub"), SymlinkPolicy::Refuse, None), Errno::LOOP);
        // The last name is opened without following links, and a link cannot be mounted.
        assert_eq!(refusal(&place.join("real/last"), SymlinkPolicy::Refuse, None), Errno::NOTDIR);
        // Followed, it exists, with another owner than the given one.
        let nobody = Some(VolumeOwner { user: u32::MAX - 1, group: 0, program: 1 });
        assert_eq!(refusal(&place.join("link/sub"), SymlinkPolicy::Follow, nobody), Errno::STALE);
        assert_eq!(refusal(&place.join("real/last"), SymlinkPolicy::Follow, None), Errno::NOTDIR);
        assert_eq!(refusal(&place.join("real/sub"), SymlinkPolicy::Refuse, nobody), Errno::STALE);
    }
}
