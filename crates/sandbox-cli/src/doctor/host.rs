//! Facts about the host that need no probing.

use std::fs;

use serde::Serialize;

/// Kernel, user and control groups of the host.
#[derive(Debug, Serialize)]
pub(super) struct Host {
    pub(super) kernel: String,
    pub(super) architecture: String,
    pub(super) uid: u32,
    /// Whether each sandbox gets its own id range.
    pub(super) own_ids: bool,
    pub(super) cgroups: Cgroups,
}

/// The mounted versions of control groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Cgroups {
    V2,
    V1,
    /// Controllers in version 1, and a version 2 hierarchy without them.
    Hybrid,
    None,
}

impl Host {
    pub(super) fn detect() -> Self {
        let name = rustix::system::uname();
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        Self {
            kernel: name.release().to_string_lossy().into_owned(),
            architecture: name.machine().to_string_lossy().into_owned(),
            uid: rustix::process::geteuid().as_raw(),
            own_ids: sandbox::sandboxes_have_own_ids(),
            cgroups: Cgroups::from_mounts(&mounts),
        }
    }

    pub(super) fn describe_user(&self) -> String {
        match (self.uid, self.own_ids) {
            (_, true) => "root (each sandbox gets its own id range)".to_owned(),
            (0, false) => {
                "root of a user namespace with few ids (sandboxes run with this id)".to_owned()
            }
            (uid, false) => format!("uid {uid}, unprivileged (sandboxes run with this id)"),
        }
    }
}

impl Cgroups {
    /// Parses `/proc/self/mountinfo`, where ` - ` precedes the file system type.
    fn from_mounts(mounts: &str) -> Self {
        let kinds = mounts.lines().filter_map(|line| line.split_once(" - ")?.1.split(' ').next());
        let (mut first, mut second) = (false, false);
        for kind in kinds {
            first |= kind == "cgroup";
            second |= kind == "cgroup2";
        }
        match (first, second) {
            (true, true) => Self::Hybrid,
            (true, false) => Self::V1,
            (false, true) => Self::V2,
            (false, false) => Self::None,
        }
    }

    pub(super) fn describe(self) -> &'static str {
        match self {
            Self::V2 => "version 2",
            Self::V1 => "version 1",
            Self::Hybrid => "version 1, and version 2 without controllers",
            Self::None => "none",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cgroup_version_is_read_from_the_mounts() {
        let v1 = "32 25 0:28 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";
        let v2 = "33 25 0:29 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw\n";
        let other = "22 1 8:1 / / rw - ext4 /dev/cgroup2 rw\n";
        assert_eq!(Cgroups::from_mounts(v1), Cgroups::V1);
        assert_eq!(Cgroups::from_mounts(v2), Cgroups::V2);
        assert_eq!(Cgroups::from_mounts(&format!("{other}{v1}{v2}")), Cgroups::Hybrid);
        assert_eq!(Cgroups::from_mounts(other), Cgroups::None);
    }
}
