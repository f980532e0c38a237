//! The three host IDs of a container, unique among running containers, as in the native backend.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::{FlockOperation, flock};
use sandbox_linux::cgroup::Hierarchy;

/// Below the IDs of native sandboxes, above the ranges that distributions assign.
const FIRST_ID: u32 = 0x6000_0000;
/// Each process with containers has a block of IDs, for this many containers at a time.
const BLOCKS: u32 = 1 << 16;
const MAX_CONTAINERS: u32 = 1 << 10;
const IDS_PER_CONTAINER: u32 = 4;

/// The block of this process.
#[derive(Debug)]
pub(crate) struct Ids {
    /// The file that marks the block as taken.
    claim: PathBuf,
    block: u32,
    used: Mutex<BTreeSet<u32>>,
}

/// The IDs of one container, released when dropped.
#[derive(Debug)]
pub(crate) struct Range {
    pub(crate) first: u32,
    number: u32,
    ids: Arc<Ids>,
}

impl Ids {
    /// Claims a block for the named process in this directory.
    pub(crate) fn claim(directory: &Path, name: &str) -> io::Result<Self> {
        let _alone = alone_in(directory)?;
        let start = std::process::id() % BLOCKS;
        for block in (start..BLOCKS).chain(0..start) {
            let claim = directory.join(block.to_string());
            if fs::read_link(&claim).is_ok_and(|owner| is_left(&owner)) {
                let _ = fs::remove_file(&claim);
            }
            match symlink(name, &claim) {
                Ok(()) => return Ok(Self { claim, block, used: Mutex::default() }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::other("all ids for containers are in use"))
    }

    /// Releases the blocks of ended processes, except those with leftovers that still have to be
    /// removed.
    pub(crate) fn sweep(directory: &Path) {
        // If it does not exist, no process has a block.
        let Ok(_alone) = alone_in(directory) else { return };
        let claims = fs::read_dir(directory).into_iter().flatten().flatten();
        for claim in claims.map(|claim| claim.path()) {
            let is_over = |owner: &Path| {
                is_left(owner) && directory.parent().is_none_or(|place| !place.join(owner).exists())
            };
            if fs::read_link(&claim).is_ok_and(|owner| is_over(&owner)) {
                let _ = fs::remove_file(claim);
            }
        }
    }

    pub(crate) fn take(self: &Arc<Self>) -> Option<Range> {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let number = (0..MAX_CONTAINERS).find(|number| !used.contains(number))?;
        used.insert(number);
        let first = FIRST_ID + (self.block * MAX_CONTAINERS + number) * IDS_PER_CONTAINER;
        Some(Range { first, number, ids: Arc::clone(self) })
    }
}

/// Locks the directory: of two processes that find the same stale block, the second must not remove
/// the first one's claim.
fn alone_in(directory: &Path) -> io::Result<File> {
    let held = File::open(directory)?;
    flock(&held, FlockOperation::LockExclusive)?;
    // The last process may have removed the file, and another created a new one.
    let (of_held, now) = (held.metadata()?, fs::metadata(directory)?);
    if (of_held.dev(), of_held.ino()) != (now.dev(), now.ino()) {
        return Err(io::ErrorKind::NotFound.into());
    }
    Ok(held)
}

fn is_left(owner: &Path) -> bool {
    owner.to_str().is_some_and(Hierarchy::is_left_by_the_dead)
}

impl Drop for Ids {
    fn drop(&mut self) {
        // A later start notices that this process ended.
        let _ = fs::remove_file(&self.claim);
        // The last process removes the directory; for others it is not empty.
        for directory in self.claim.ancestors().skip(1).take(2) {
            let _ = fs::remove_dir(directory);
        }
    }
}

impl Drop for Range {
    fn drop(&mut self) {
        self.ids.used.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own_name() -> String {
        format!("{}0", Hierarchy::own_prefix().unwrap())
    }

    #[test]
    fn no_two_containers_have_an_id_in_common() {
        let directory = tempfile::tempdir().unwrap();
        let claim = || Arc::new(Ids::claim(directory.path(), &own_name()).unwrap());
        let (one, other) = (claim(), claim());
        let ranges: Vec<Range> = (0..MAX_CONTAINERS).map(|_| one.take().unwrap()).collect();
        assert!(one.take().is_none());
        let their_range = other.take().unwrap();
        let firsts: BTreeSet<u32> = ranges
            .iter()
            .chain([&their_range])
            .map(|range| range.first / IDS_PER_CONTAINER)
            .collect();
        assert_eq!(firsts.len(), ranges.len() + 1);
        drop(ranges);
        assert!(one.take().is_some());
    }

    #[test]
    fn a_block_of_the_dead_is_taken_over() {
        let directory = tempfile::tempdir().unwrap();
        let dead = format!("sandbox-run.{}.1.0", u32::MAX);
        let block = (std::process::id() % BLOCKS).to_string();
        symlink(dead, directory.path().join(&block)).unwrap();
        let ids = Ids::claim(directory.path(), &own_name()).unwrap();
        assert_eq!(ids.block.to_string(), block);
        drop(ids);
        assert!(fs::read_link(directory.path().join(&block)).is_err());
    }

    #[test]
    fn a_block_of_the_dead_is_taken_over_by_one_of_many() {
        let directory = tempfile::tempdir().unwrap();
        let block = (std::process::id() % BLOCKS).to_string();
        for round in 0..100 {
            let dead = format!("sandbox-run.{}.1.0", u32::MAX);
            symlink(dead, directory.path().join(&block)).unwrap();
            let together = std::sync::Barrier::new(4);
            let claim = || {
                together.wait();
                Ids::claim(directory.path(), &own_name()).unwrap()
            };
            let all: Vec<Ids> = std::thread::scope(|scope| {
                let threads: Vec<_> = (0..4).map(|_| scope.spawn(claim)).collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).collect()
            });
            let blocks: BTreeSet<u32> = all.iter().map(|ids| ids.block).collect();
            assert_eq!(blocks.len(), all.len(), "round {round}");
            drop(all);
            // The last process leaves nothing.
            fs::create_dir_all(directory.path()).unwrap();
        }
    }
}
