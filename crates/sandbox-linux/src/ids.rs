//! Which ids a sandbox has outside.
//!
//! With root, each sandbox gets three ids that no other process on the machine has at that time. They
//! follow from the process id of its init, which the kernel already keeps unique among the living: no
//! lock file, no table, nothing to leak. Init outlives every process of its sandbox, so an id is
//! never in use twice; and no file outlives the sandbox with such an id, because its file systems go
//! with it and volumes are mapped to the caller's id.
//!
//! Without root there is one id to give: the caller's own. The same goes for root of a user namespace
//! that does not have these ids, such as a container that was started without root.

use rustix::process::Pid;
use rustix::thread::Uid;
use sandbox_protocol::Message as _;

use crate::place::INSIDE_ID;

/// Above the ranges that distributions hand to containers, below the end of positive 32-bit ids.
const FIRST: u32 = 0x7000_0000;
/// Process ids end here (`PID_MAX_LIMIT` on 64-bit machines).
const MAX_PIDS: u32 = 1 << 22;
/// Root inside (init), the program's user, and nobody.
const PER_SANDBOX: u32 = 4;
const NOBODY: u32 = 65_534;

/// Users that own user namespaces, and nothing else; below the ids of sandboxes.
const FIRST_OWNER: u32 = 0x5000_0000;
/// How many of them one launcher has.
pub(crate) const OWNERS_PER_LAUNCHER: u32 = 128;

/// The user that owns the user namespace of a sandbox.
///
/// The kernel counts inotify instances and watches, and namespaces, of a sandbox against the owner of its user namespace too. If
/// that were root, one sandbox could use up what every other one and the host's own services need. Launchers that live
/// at the same time have different owners; sandboxes of one launcher share one only beyond [`OWNERS_PER_LAUNCHER`].
pub(crate) fn namespace_owner(launcher: Pid, number: u32) -> Uid {
    let launcher = launcher.as_raw_nonzero().get().unsigned_abs() % MAX_PIDS;
    Uid::from_raw(FIRST_OWNER + launcher * OWNERS_PER_LAUNCHER + number % OWNERS_PER_LAUNCHER)
}

/// The ids of one sandbox outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ids {
    /// Its own range.
    Range(u32),
    /// The one id of the launcher's user namespace.
    Single,
}

impl Ids {
    /// A range that is free as long as this process lives.
    pub(crate) fn for_init(init: Pid) -> Self {
        let number = init.as_raw_nonzero().get().unsigned_abs() % MAX_PIDS;
        Self::Range(FIRST + number * PER_SANDBOX)
    }

    /// How the launcher tells init.
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

    /// What is written to `uid_map` and to `gid_map`.
    pub(crate) fn map(self) -> String {
        match self {
            Self::Range(first) => {
                format!("0 {first} 1\n{INSIDE_ID} {} 1\n{NOBODY} {} 1\n", first + 1, first + 2)
            }
            Self::Single => format!("{INSIDE_ID} 0 1\n"),
        }
    }

    /// The program's user outside, as the launcher sees it.
    pub(crate) fn owner(self) -> u32 {
        match self {
            Self::Range(first) => first + 1,
            Self::Single => 0,
        }
    }
}

/// Whether this process may give ids of their own to sandboxes: it is root, and of a user namespace
/// that has those ids.
pub fn are_available() -> bool {
    let maps = ["/proc/self/uid_map", "/proc/self/gid_map"];
    rustix::process::geteuid().is_root()
        && maps.iter().all(|map| std::fs::read_to_string(map).is_ok_and(|map| covers_all(&map)))
}

/// Whether one line of an id map (first inside, first outside, how many) covers every id we may give.
fn covers_all(map: &str) -> bool {
    let end = u64::from(FIRST) + u64::from(MAX_PIDS) * u64::from(PER_SANDBOX);
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
        assert!(second >= first + PER_SANDBOX);
        let last = ids((MAX_PIDS - 1).cast_signed()).owner();
        assert!(i32::try_from(last + PER_SANDBOX).is_ok());
        let owner =
            |pid: i32, number| namespace_owner(Pid::from_raw(pid).unwrap(), number).as_raw();
        assert_ne!(owner(1000, 0), owner(1000, 1));
        assert_ne!(owner(1000, OWNERS_PER_LAUNCHER - 1), owner(1001, 0));
        assert!(owner((MAX_PIDS - 1).cast_signed(), OWNERS_PER_LAUNCHER - 1) < FIRST);
        assert_eq!(ids(5).map().lines().count(), 3);
        for known in [ids(5), Ids::Single] {
            assert_eq!(Ids::decode(&known.encode()), Some(known));
        }
    }
}
