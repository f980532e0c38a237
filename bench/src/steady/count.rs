//! What is counted at a point, and how much more of it there may be later.

use std::time::Duration;

use anyhow::Context;
use sandbox_tests::residue::{Residue, resident_kib};
use serde::Serialize;

use crate::usage::{HostMemory, below_kib};

/// Allowed growth for fragmentation and caches: a tenth, and this many KiB.
const MORE_MEMORY_KIB: u64 = 4096;
/// Spare slots are made and taken down in the background, so the counts of a moment differ a little.
const MORE_DESCRIPTORS: u64 = 16;
const MORE_PROCESSES: u64 = 4;
const MORE_CGROUPS: u64 = 4;
/// Inodes, and cgroups that the kernel has not let go of yet, are the whole host's: others make some too. One
/// that stays of every ten executions is seen.
const MORE_ON_HOST: u64 = 2000;
const ONE_IN: u64 = 10;

/// Everything that must not grow.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Count {
    /// Resident memory of this process.
    #[serde(rename = "resident_kib")]
    memory_kib: u64,
    /// Proportional memory of everything it started: launchers, slots, what is kept ready.
    below_kib: u64,
    descriptors: u64,
    processes: u64,
    cgroups: u64,
    /// Of the memory controller, those included that are removed and still hold pages.
    cgroups_on_host: u64,
    inodes_on_host: u64,
    /// Reported but not checked: it includes everything else on the host.
    host_mib: u64,
}

/// One of the counts, from the first point to the last.
pub(super) struct Growth {
    pub(super) what: &'static str,
    pub(super) first: u64,
    pub(super) last: u64,
    /// The most there may be at the last.
    pub(super) allowed: u64,
}

impl Growth {
    pub(super) fn is_flat(&self) -> bool {
        self.last <= self.allowed
    }
}

impl Count {
    pub(super) const HEAD: &str = "executions  seconds  KiB here  KiB below  descriptors  processes  \
                                   cgroups  host cgroups  host inodes  host MiB";

    /// Waits until slots are made and taken down, and counts.
    pub(super) fn at_rest() -> anyhow::Result<Self> {
        let residue = Residue::count_at_rest();
        let inodes = std::fs::read_to_string("/proc/sys/fs/inode-nr")?;
        let inodes = inodes.split_whitespace().next().and_then(|number| number.parse().ok());
        Ok(Self {
            memory_kib: resident_kib("VmRSS"),
            below_kib: below_kib(),
            descriptors: residue.descriptors as u64,
            processes: residue.processes as u64,
            cgroups: residue.cgroups as u64,
            cgroups_on_host: cgroups_on_host()?,
            inodes_on_host: inodes.context("the kernel counts inodes")?,
            host_mib: whole_mib(HostMemory::now()?.used),
        })
    }

    pub(super) fn line(&self, executions: usize, elapsed: Duration) -> String {
        format!(
            "{executions:>10}  {:>7}  {:>8}  {:>9}  {:>11}  {:>9}  {:>7}  {:>12}  {:>11}  {:>8}",
            elapsed.as_secs(),
            self.memory_kib,
            self.below_kib,
            self.descriptors,
            self.processes,
            self.cgroups,
            self.cgroups_on_host,
            self.inodes_on_host,
            self.host_mib
        )
    }

    /// How everything that is judged has grown after so many more executions.
    pub(super) fn growth(&self, last: &Self, executions: usize) -> Vec<Growth> {
        let memory = |kib: u64| kib + kib / 10 + MORE_MEMORY_KIB;
        let on_host = |count: u64| count + (executions as u64 / ONE_IN).max(MORE_ON_HOST);
        let growth = |what, take: fn(&Self) -> u64, allow: &dyn Fn(u64) -> u64| Growth {
            what,
            first: take(self),
            last: take(last),
            allowed: allow(take(self)),
        };
        vec![
            growth("KiB of this process", |count| count.memory_kib, &memory),
            growth("KiB of what it started", |count| count.below_kib, &memory),
            growth("descriptors", |count| count.descriptors, &|count| count + MORE_DESCRIPTORS),
            growth("processes", |count| count.processes, &|count| count + MORE_PROCESSES),
            growth("cgroups", |count| count.cgroups, &|count| count + MORE_CGROUPS),
            growth("cgroups of the host", |count| count.cgroups_on_host, &on_host),
            growth("inodes of the host", |count| count.inodes_on_host, &on_host),
        ]
    }
}

/// Cgroups with a memory controller; none where the kernel does not say.
fn cgroups_on_host() -> anyhow::Result<u64> {
    let text = std::fs::read_to_string("/proc/cgroups")?;
    let memory = text.lines().find(|line| line.starts_with("memory"));
    Ok(memory.and_then(|line| line.split_whitespace().nth(2)?.parse().ok()).unwrap_or_default())
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "no machine has that much memory, or less than none"
)]
fn whole_mib(kib: f64) -> u64 {
    (kib / 1024.0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Count = Count {
        memory_kib: 20_000,
        below_kib: 10_000,
        descriptors: 100,
        processes: 9,
        cgroups: 12,
        cgroups_on_host: 100,
        inodes_on_host: 50_000,
        host_mib: 1000,
    };

    fn growing(last: Count) -> Vec<&'static str> {
        let growth = FIRST.growth(&last, 90_000);
        growth.iter().filter(|growth| !growth.is_flat()).map(|growth| growth.what).collect()
    }

    #[test]
    fn what_stays_is_flat() {
        assert!(growing(FIRST).is_empty());
        assert!(growing(Count { memory_kib: 22_000, descriptors: 104, ..FIRST }).is_empty());
    }

    #[test]
    fn what_a_share_of_executions_leaves_is_seen() {
        let left = 90_000 / 5;
        assert_eq!(growing(Count { descriptors: 100 + left, ..FIRST }), ["descriptors"]);
        assert_eq!(growing(Count { cgroups: 12 + left, ..FIRST }), ["cgroups"]);
        let inodes = FIRST.inodes_on_host + left;
        assert_eq!(growing(Count { inodes_on_host: inodes, ..FIRST }), ["inodes of the host"]);
        assert_eq!(growing(Count { memory_kib: 38_000, ..FIRST }), ["KiB of this process"]);
    }
}
