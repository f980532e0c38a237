//! Protections that this host lacks, with the reason and the remedy.

use sandbox_core::{MissingProtection, Protection};
use sandbox_linux::skeleton::Shown;
use sandbox_linux::{capabilities, ipc_limits, landlock, mountinfo, private_root};

/// Protections that a kernel with this version of Landlock lacks.
pub(crate) fn missing_landlock(version: u32) -> Vec<MissingProtection> {
    let missing = landlock::missing_from(version).map(|part| {
        let reason = match version {
            0 => "the kernel has no Landlock".to_owned(),
            _ => format!(
                "the kernel's Landlock has version {version}, and this needs {}",
                part.version
            ),
        };
        let remedy = match part.instead {
            None => format!("use Linux {} or later with landlock in the lsm= list", part.kernel),
            Some(instead) => format!(
                "use Linux {} or later; executions go on without it, behind {instead}",
                part.kernel
            ),
        };
        MissingProtection { protection: part.protection, reason, remedy }
    });
    missing.collect()
}

/// Protections of inodes that this host lacks for sandboxes that show these directories.
/// `makes_devices` is whether the sandbox can have device nodes of its own.
pub(crate) fn missing_inodes(shown: &[Shown], makes_devices: bool) -> Vec<MissingProtection> {
    let missing = |protection, reason: &str, remedy: &str| MissingProtection {
        protection,
        reason: reason.to_owned(),
        remedy: remedy.to_owned(),
    };
    if !private_root::is_available() {
        let reason = "the kernel has no overlay file system";
        let remedy = "load it with modprobe overlay; ordinary users need Linux 5.11";
        let parts = [Protection::PrivateInodes, Protection::PrivateFileInodes];
        return parts.map(|part| missing(part, reason, remedy)).into();
    }
    let reason = match mountinfo::files_below(shown.iter().map(|shown| shown.host.as_path())) {
        Ok(files) => files.first().map(|file| {
            format!("{} is a mount of a single file, which no overlay covers", file.display())
        }),
        Err(error) => Some(format!("the host's mounts cannot be read: {error}")),
    };
    let remedy = "unmount it; executions go on with the host's inode there";
    let files = reason.map(|reason| missing(Protection::PrivateFileInodes, &reason, remedy));
    let devices = (!makes_devices).then(|| {
        let reason = "this user may make no device nodes: /dev/null and its like are the host's";
        let remedy = "run as root with CAP_MKNOD; executions go on with the host's devices";
        missing(Protection::PrivateFileInodes, reason, remedy)
    });
    // At most one entry for each protection.
    devices.or(files).into_iter().collect()
}

/// The protection of inotify limits, if this host lacks it for the native backend.
pub(crate) fn missing_inotify_limits(has_own_ids: bool) -> Option<MissingProtection> {
    let (reason, remedy) = if !has_own_ids {
        ("sandboxes of an ordinary user are counted for that user", "run as root")
    } else if !capabilities::can_be_kept_through_user_changes() {
        (
            "without CAP_SETPCAP, sandboxes are counted for root",
            "run with CAP_SETPCAP and without locked secure bits",
        )
    } else {
        return None;
    };
    Some(MissingProtection {
        protection: Protection::InotifyLimits,
        reason: reason.to_owned(),
        remedy: format!("{remedy}; executions go on with a limit that others share"),
    })
}

/// The protection of IPC limits, if this host lacks it for the native backend.
pub(crate) fn missing_ipc_limits(has_own_ids: bool) -> Option<MissingProtection> {
    let (reason, remedy) = if !has_own_ids {
        ("an ordinary user has no sandbox whose root may set them", "run as root")
    } else if !ipc_limits::are_settable_inside() {
        ("the kernel does not let a sandbox's init set them", "use Linux 6.9 or later")
    } else {
        return None;
    };
    Some(MissingProtection {
        protection: Protection::IpcLimits,
        reason: reason.to_owned(),
        remedy: format!("{remedy}; executions go on with the kernel's own limits"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_part_of_landlock_names_the_kernel_that_provides_it() {
        let lines = |version| {
            let missing = missing_landlock(version).into_iter();
            let line = |missing: MissingProtection| {
                format!("{}: {}; {}", missing.protection, missing.reason, missing.remedy)
            };
            missing.map(line).collect::<Vec<_>>()
        };
        assert!(lines(6).is_empty());
        assert_eq!(lines(5).len(), 1);
        assert!(lines(5)[0].starts_with("landlock-scope: the kernel's Landlock has version 5, "));
        assert!(lines(5)[0].contains("Linux 6.12 or later; executions go on"), "{:?}", lines(5));
        assert_eq!(lines(2).len(), 3);
        assert!(lines(0)[0].starts_with("landlock: the kernel has no Landlock; use Linux 5.13"));
    }
}
