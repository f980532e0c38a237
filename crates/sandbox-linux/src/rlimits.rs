//! Rlimits: defense in depth beside the cgroup, and the only limit on what no cgroup counts. Limits
//! are only lowered, so no privilege is needed.

use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit};
use sandbox_core::{ByteSize, Limits};

use crate::step::{AtStep, StepError};

/// Stack size of the main thread for deep recursion, and the default for threads.
const STACK: u64 = 64 << 20;
/// Where memory is limited through address space, thread stacks count in full.
const COUNTED_STACK_BYTES: u64 = 8 << 20;
/// Locked memory cannot be reclaimed: enough for key material, and the kernel's default up to 5.15. Pages of a file that the
/// host has read are charged to their first reader, so this limit alone, times the processes, bounds how much of the page
/// cache a sandbox pins.
const LOCKED_BYTES: u64 = 64 << 10;
/// Queued signals use kernel memory.
const PENDING_SIGNALS: u64 = 256;

/// Every resource that is limited, in encoding order.
const KINDS: &[Resource] = &[
    Resource::Core,
    Resource::Fsize,
    Resource::Nofile,
    Resource::Stack,
    Resource::Memlock,
    Resource::Sigpending,
    Resource::Msgqueue,
    Resource::Nice,
    Resource::Rtprio,
    Resource::Nproc,
    Resource::Data,
    Resource::Cpu,
];

/// Limits that a cgroup also enforces, if there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shared {
    /// Limit the memory of each process, because no cgroup limits their total.
    pub memory: bool,
    /// Limit the processes of the sandbox's user. `fork` checks this limit before it copies memory, and the cgroup's
    /// only afterwards, under a lock that every start of a sandbox on this host needs. See docs/adr/0034.
    pub pids: Option<u64>,
}

/// The limits of one execution, as pairs of kind and value. `largest_file` is the maximum file
/// size.
pub fn encode(
    limits: &Limits,
    largest_file: ByteSize,
    shared: Shared,
    open_files: bool,
) -> Vec<(u64, u64)> {
    let stack = if shared.memory { COUNTED_STACK_BYTES } else { STACK };
    let mut wanted = vec![
        (Resource::Core, 0),
        (Resource::Fsize, largest_file.as_u64()),
        (Resource::Stack, stack.min(limits.memory().as_u64())),
        (Resource::Memlock, LOCKED_BYTES),
        (Resource::Sigpending, PENDING_SIGNALS),
        (Resource::Msgqueue, 0),
        (Resource::Nice, 0),
        (Resource::Rtprio, 0),
    ];
    if open_files {
        wanted.push((Resource::Nofile, limits.open_files().into()));
    }
    if let Some(pids) = shared.pids {
        wanted.push((Resource::Nproc, pids));
    }
    if shared.memory {
        wanted.push((Resource::Data, limits.memory().as_u64()));
    }
    if let Some(time) = limits.cpu_time() {
        // The limit on the whole sandbox is enforced elsewhere; this ends a single process even if
        // the supervisor cannot.
        wanted.push((Resource::Cpu, time.as_secs() + 2));
    }
    wanted.into_iter().map(|(kind, value)| (number(kind), value)).collect()
}

/// The same pairs with the kernel's numbers, never above the current limits of this process.
pub fn numbered(pairs: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let decoded = decode(pairs).unwrap_or_default().into_iter();
    decoded.filter_map(|(kind, limit)| Some((kind as u64, limit.current?))).collect()
}

fn number(kind: Resource) -> u64 {
    let place = KINDS.iter().position(|known| *known == kind);
    place.expect("every limited kind is in the list") as u64
}

/// Decodes the pairs, never above the current limits of this process.
pub(crate) fn decode(pairs: &[(u64, u64)]) -> Result<Vec<(Resource, Rlimit)>, StepError> {
    pairs
        .iter()
        .map(|(kind, value)| {
            let kind = usize::try_from(*kind).ok().and_then(|place| KINDS.get(place).copied());
            let kind = kind.ok_or(Errno::INVAL).at("read the resource limits")?;
            let highest = getrlimit(kind).maximum.unwrap_or(u64::MAX);
            let value = Some((*value).min(highest));
            Ok((kind, Rlimit { current: value, maximum: value }))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_encoded_completely_and_never_raised() {
        let limits = Limits::run().with_open_files(1_000_000).unwrap();
        let shared = Shared { memory: true, pids: Some(64) };
        let pairs = encode(&limits, limits.disk(), shared, true);
        let read = decode(&pairs).unwrap();
        assert_eq!(read.len(), pairs.len());
        for (kind, limit) in read {
            let highest = getrlimit(kind).maximum.unwrap_or(u64::MAX);
            assert!(limit.maximum.unwrap() <= highest, "{kind:?} would rise");
            assert_eq!(limit.current, limit.maximum);
        }
        assert!(decode(&[(99, 1)]).is_err());
    }
}
