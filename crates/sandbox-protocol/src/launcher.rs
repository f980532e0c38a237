//! What the launcher is asked to do: first its [`LauncherConfig`], then any number of [`LauncherRequest`]s.

use crate::message::message;

/// What is the same for every sandbox of a launcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LauncherConfig<'a> {
    /// The protections in force, one bit each.
    pub protections: u64,
    /// Directory of the unpacked image that is the root; empty for the host's own programs.
    pub image: &'a str,
    /// The compiled system-call filter.
    pub seccomp_filter: &'a [u8],
    /// Whether the filter asks the supervisor about denied calls.
    pub seccomp_notify: bool,
    /// Prefix of the names of the supervisor's cgroups. Their parent directories travel as descriptors.
    pub cgroup_prefix: &'a str,
    /// Default size of the writable file system of a slot.
    pub disk_bytes: u64,
    /// Default number of files on it.
    pub disk_inodes: u64,
}

/// What a slot is prepared for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotKind {
    /// Any program: a process is confined ahead of time and only has to become it.
    Any,
    /// A runtime that is started ahead of time and waits for its program.
    Waiting,
    /// A fork of a zygote.
    Adopting,
}

/// The owner of a volume's files on the host, and the program's user as the host knows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VolumeOwner {
    /// User on the host.
    pub user: u32,
    /// Group on the host.
    pub group: u32,
    /// The program's user and group on the host.
    pub program: u32,
}

/// How symbolic links in a host path are treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SymlinkPolicy {
    /// Follow them: the path is one of the supervisor's own.
    Follow,
    /// Refuse them: the path was already resolved and checked, so a link in it was put there afterwards.
    Refuse,
}

/// A request to the launcher. The first descriptor is always the socket on which it is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LauncherRequest<'a> {
    /// Prepare a slot. Descriptors: the slot's socket, five streams, then its cgroup entries.
    PrepareSlot {
        /// Whether the one entry is a cgroup to clone into, rather than files to write "0" to.
        clone_into_cgroup: bool,
        /// What the slot is for.
        kind: SlotKind,
    },
    /// Detach a mount of a host path. Answered with the mount's descriptor.
    OpenVolume {
        /// Path on the host.
        path: &'a str,
        /// What to do about symbolic links in it.
        symlinks: SymlinkPolicy,
        /// Whether the mount is writable.
        writable: bool,
        /// The owner of its files, if ids have to be mapped.
        owner: Option<VolumeOwner>,
    },
    /// Start a zygote. Descriptors: its socket, and its standard error.
    StartZygote {
        /// How, as an encoded [`ExecRequest`](crate::exec::ExecRequest).
        exec: &'a [u8],
    },
    /// The supervisor has cleaned up and exits. Without this message its end means that it died, and the launcher
    /// removes the cgroups it left.
    Shutdown,
}

message! {
    struct<'a> LauncherConfig<'a> {
        protections, image, seccomp_filter, seccomp_notify, cgroup_prefix, disk_bytes, disk_inodes,
    }
}
message! { enum<'a> SlotKind { 0 => Any {}, 1 => Waiting {}, 2 => Adopting {} } }
message! { struct<'a> VolumeOwner { user, group, program } }
message! { enum<'a> SymlinkPolicy { 0 => Follow {}, 1 => Refuse {} } }
message! {
    enum<'a> LauncherRequest<'a> {
        1 => PrepareSlot { clone_into_cgroup, kind },
        2 => OpenVolume { path, symlinks, writable, owner },
        3 => StartZygote { exec },
        4 => Shutdown {},
    }
}
