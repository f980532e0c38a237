//! The user and group IDs of a sandbox on the host.
//!
//! With root, each sandbox gets three IDs that no other process on the machine has at that time.
//! They are derived from the PID of its init, which the kernel keeps unique among living processes:
//! no lock file, no table, nothing to leak. Init outlives every process of its sandbox, so no two
//! sandboxes have an ID at the same time; and no file outlives the sandbox with such an ID, because
//! its file systems are removed with it and volumes are mapped to the caller's ID.
//!
//! Without root there is only one ID: the caller's own. The same applies to root in a user
//! namespace without these IDs, such as a rootless container.

use rustix::process::Pid;
use rustix::thread::Uid;
use sandbox_protocol::Message as _;

use crate::rootfs::INSIDE_ID;

/// Above the ranges that distributions assign to containers, below the end of positive 32-bit IDs.
const FIRST_ID: u32 = 0x7000_0000;
/// Exclusive maximum of PIDs (`PID_MAX_LIMIT` on 64-bit machines).
const MAX_PIDS: u32 = 1 << 22;
/// Root inside (init), the program's user, and nobody.
const IDS_PER_SANDBOX: u32 = 4;
const NOBODY: u32 = 65_534;

/// Users that only own user namespaces; below the IDs of sandboxes.
const FIRST_OWNER: u32 = 0x5000_0000;
/// Number of such users for one launcher.
pub(crate) const OWNERS_PER_LAUNCHER: u32 = 128;

/// The user that owns a sandbox's user namespace.
///
/// The kernel also counts a sandbox's inotify instances, watches and namespaces for the owner of
/// its user namespace. If that were root, one sandbox could use up what every other one and the
/// host's services need. Launchers that exist at the same time have different owners; sandboxes of
/// one launcher share an owner only beyond [`OWNERS_PER_LAUNCHER`].
pub(crate) fn namespace_owner(launcher: Pid, number: u32) -> Uid {
    let launcher = launcher.as_raw_nonzero().get().unsigned_abs() % MAX_PIDS;
    Uid::from_raw(FIRST_OWNER + launcher * OWNERS_PER_LAUNCHER + number % OWNERS_PER_LAUNCHER)
}

/// The host IDs of one sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ids {
    /// A range of its own.
    Range(u32),
    /// The only ID of the launcher's user namespace.
    Single,
}

impl Ids {
    /// The range for an init with this PID.
    pub(crate) fn for_init(init: Pid) -> Self {
        let number = init.as_raw_nonzero().get().unsigned_abs() % MAX_PIDS;
        Self::Range(FIRST_ID + number * IDS_PER_SANDBOX)
    }

    /// The encoding in which the launcher sends them to init.
    pub(crate) fn encode(self) -> Vec<u8> {
        let first = match self {
            Self::Range(first) => first,
            Self::Single => 0,
        };
        first.encode()
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        match u32::decode(bytes).ok()? {
            0 => Some(Self::Single),
            first => Some(Self::Range(first)),
        }
    }

    /// The content of `uid_map` and `gid_map`.
    pub(crate) fn map(self) -> String {
        match self {
            Self::Range(first) => {
                format!("0 {first} 1\n{INSIDE_ID} {} 1\n{NOBODY} {} 1\n", first + 1, first + 2)
            }
            Self::Single => format!("{INSIDE_ID} 0 1\n"),
        }
    }

    /// The program's user, as the launcher sees it.
    pub(crate) fn owner(self) -> u32 {
        match self {
            Self::Range(first) => first + 1,
            Self::Single => 0,
        }
    }
}

/// Whether this process can give sandboxes IDs of their own: it is root in a user namespace that
/// maps those IDs.
pub fn are_available() -> bool {
    let maps = ["/proc/self/uid_map", "/proc/self/gid_map"];
    rustix::process::geteuid().is_root()
        && maps.iter().all(|map| std::fs::read_to_string(map).is_ok_and(|map| covers_all(&map)))
}

/// Whether one line of an ID map (first inside, first outside, count) covers all these IDs.
fn covers_all(map: &str) -> bool {
    let end = u64::from(FIRST_ID) + u64::from(MAX_PIDS) * u64::from(IDS_PER_SANDBOX);
    map.lines().any(|line| {
        let mut numbers = line.split_whitespace().map(|number| number.parse::<u64>().ok());
        match (numbers.next().flatten(), numbers.nth(1).flatten()) {
            (Some(first), Some(count)) => first <= u64::from(FIRST_OWNER) && first + count >= end,
            _ => false,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_namespace_with_all_ids_has_ranges_to_give() {
        assert!(covers_all("         0          0 4294967295\n"));
        for map in ["0 1000 1\n", "0 100000 65536\n", "0 1000 1\n1 100000 65536\n", "", "odd"] {
            assert!(!covers_all(map), "{map:?}");
        }
    }

    #[test]
    fn ranges_of_living_processes_do_not_overlap_and_stay_positive() {
        let ids = |pid: i32| Ids::for_init(Pid::from_raw(pid).unwrap());
        let (first, second) = (ids(1000).owner(), ids(1001).owner());
        assert!(second >= first + IDS_PER_SANDBOX);
        let last = ids((MAX_PIDS - 1).cast_signed()).owner();
        assert!(i32::try_from(last + IDS_PER_SANDBOX).is_ok());
        let owner =
            |pid: i32, number| namespace_owner(Pid::from_raw(pid).unwrap(), number).as_raw();
        assert_ne!(owner(1000, 0), owner(1000, 1));
        assert_ne!(owner(1000, OWNERS_PER_LAUNCHER - 1), owner(1001, 0));
        assert!(owner((MAX_PIDS - 1).cast_signed(), OWNERS_PER_LAUNCHER - 1) < FIRST_ID);
        assert_eq!(ids(5).map().lines().count(), 3);
        for known in [ids(5), Ids::Single] {
            assert_eq!(Ids::decode(&known.encode()), Some(known));
        }
    }
}
