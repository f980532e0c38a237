//! Bounds what a sandbox holds that is charged to no cgroup: file locks, and the objects of
//! [`held_objects`].
//!
//! The kernel charges record locks to no cgroup and has no limit for them. Counting them at the call would make
//! every transaction of a database several times slower, so they are sampled: one thread looks at how many lock
//! objects the kernel has, and reads who holds them only when the number has grown
//! ([ADR 31](../../../../docs/adr/0031-file-locks-by-sampling.md)). The other objects have no list:
//! when the kernel's memory has grown, they are counted for each sandbox
//! ([ADR 40](../../../../docs/adr/0040-kernel-memory-beyond-charges.md)).

use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt as _;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, eventfd};

use super::held_objects;

/// Locks that one sandbox may hold; a sandbox with more is ended.
const MAX_LOCKS: usize = 8192;
/// The list of locks is looked at when this many were added since the last time.
const MAX_UNSEEN_LOCKS: u64 = 4096;
/// The list is read in parts with gaps between them, the first gap this large. Each part blocks
/// every process that locks a file: the kernel generates the list anew from the beginning while it
/// holds the lock.
const FIRST_GAP: u64 = 32 * 1024;
/// The list is read no further than this.
const MAX_LIST_BYTES: u64 = 4 << 20;
/// If the whole list was not read, this many locks are too many for the sandbox that holds the
/// most.
const MAX_LOCKS_UNDER_PRESSURE: usize = MAX_LOCKS / 8;
/// A single part may happen to contain all locks of one sandbox.
const MIN_PARTS: usize = 3;
/// A program that ends sooner is not sampled: it cannot create enough locks in that time.
pub(crate) const SAMPLE_INTERVAL: Duration = Duration::from_millis(20);
/// After reading the list, the thread pauses for this many times the duration of reading.
const BACKOFF: u32 = 4;
/// Processes cannot be nested deeper than this: a PID namespace holds no more.
const MAX_ANCESTORS: usize = 1 << 22;

/// Objects are counted when the kernel's memory has grown by this much since the last time, and
/// at least this often.
const MAX_UNSEEN_KIB: u64 = 8 << 10;
const MAX_COUNT_INTERVAL: Duration = Duration::from_secs(1);
/// The fraction of the memory limit that objects may hold.
const MEMORY_LIMIT_DIVISOR: u64 = 8;
const MIN_OBJECT_BYTES: u64 = 2 << 20;

const LOCKS: &str = "/proc/locks";
/// Slots for lock objects, as SLUB counts them; readable by root on kernels that have it.
const LOCK_OBJECTS: &str = "/sys/kernel/slab/file_lock_cache/total_objects";
/// Minimum size of a lock, if only the size of all kernel objects together is known.
const LOCK_BYTES: u64 = 192;

static SAMPLER: Mutex<Sampler> = Mutex::new(Sampler {
    sandboxes: Vec::new(),
    next_id: 0,
    is_running: false,
    seen: 0,
    seen_kib: 0,
    counted: None,
});

struct Sampler {
    sandboxes: Vec<Sandbox>,
    next_id: u64,
    is_running: bool,
    /// Number of lock objects when the list was last read, or a lower number since.
    seen: u64,
    /// The kernel's memory when objects were last counted, or less since.
    seen_kib: u64,
    counted: Option<Instant>,
}

struct Sandbox {
    id: u64,
    init: u32,
    /// What its objects may hold.
    max_bytes: u64,
    alarm: OwnedFd,
}

/// Samples what one sandbox holds until dropped.
pub(crate) struct LockLimit {
    id: u64,
    alarm: OwnedFd,
}

impl LockLimit {
    /// Samples what every process below `init` holds, by its process id.
    pub(crate) fn start(init: u32, memory_limit: u64) -> io::Result<Self> {
        let alarm = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let mut sampler = lock();
        let id = sampler.next_id;
        if !sampler.is_running {
            // Fail here rather than in the thread, where nothing could end the program.
            File::open(LOCKS)?;
            count_locks()?;
            kernel_kib()?;
            thread::Builder::new().name("lock-limit".to_owned()).spawn(sample_until_idle)?;
            sampler.is_running = true;
        }
        sampler.next_id += 1;
        let max_bytes = (memory_limit / MEMORY_LIMIT_DIVISOR).max(MIN_OBJECT_BYTES);
        sampler.sandboxes.push(Sandbox { id, init, max_bytes, alarm: alarm.try_clone()? });
        Ok(Self { id, alarm })
    }

    /// Becomes readable once the sandbox holds too much.
    pub(crate) fn alarm(&self) -> BorrowedFd<'_> {
        self.alarm.as_fd()
    }
}

impl Drop for LockLimit {
    fn drop(&mut self) {
        lock().sandboxes.retain(|sandbox| sandbox.id != self.id);
    }
}

fn lock() -> MutexGuard<'static, Sampler> {
    SAMPLER.lock().unwrap_or_else(PoisonError::into_inner)
}

fn sample_until_idle() {
    let mut pause = SAMPLE_INTERVAL;
    loop {
        thread::sleep(pause);
        let mut sampler = lock();
        if sampler.sandboxes.is_empty() {
            sampler.is_running = false;
            return;
        }
        let begun = Instant::now();
        let grown = sampler.sample().and_then(|()| sampler.sandboxes_to_count(begun));
        // Counting must not delay the start of other sandboxes.
        drop(sampler);
        match grown {
            Ok(sandboxes) => {
                for (init, max_bytes) in sandboxes {
                    if held_objects::estimate(init, max_bytes) > max_bytes {
                        lock().raise(|other| other == init);
                    }
                }
            }
            // If it cannot be counted, assume that every sandbox exceeds its limit.
            Err(_) => lock().raise(|_| true),
        }
        pause = SAMPLE_INTERVAL.max(begun.elapsed() * BACKOFF);
    }
}

impl Sampler {
    fn sample(&mut self) -> io::Result<()> {
        let now = count_locks()?;
        if now < self.seen + MAX_UNSEEN_LOCKS {
            self.seen = self.seen.min(now);
            return Ok(());
        }
        let inits: Vec<u32> = self.sandboxes.iter().map(|sandbox| sandbox.init).collect();
        let list = File::open(LOCKS)?;
        let mut known = HashMap::new();
        let sandbox_of = |process| ancestor_in(&inits, process, &mut known);
        let over = find_over_limit(|part, offset| list.read_at(part, offset), sandbox_of)?;
        self.raise(|init| Some(init) == over);
        self.seen = count_locks()?.min(now);
        Ok(())
    }

    /// The sandboxes whose objects must be counted now, and what they may hold.
    fn sandboxes_to_count(&mut self, now: Instant) -> io::Result<Vec<(u32, u64)>> {
        let kib = kernel_kib()?;
        let is_recent = self.counted.is_some_and(|at| now.duration_since(at) < MAX_COUNT_INTERVAL);
        if is_recent && kib < self.seen_kib + MAX_UNSEEN_KIB {
            self.seen_kib = self.seen_kib.min(kib);
            return Ok(Vec::new());
        }
        (self.seen_kib, self.counted) = (kib, Some(now));
        Ok(self.sandboxes.iter().map(|sandbox| (sandbox.init, sandbox.max_bytes)).collect())
    }

    fn raise(&self, is_over: impl Fn(u32) -> bool) {
        for sandbox in self.sandboxes.iter().filter(|sandbox| is_over(sandbox.init)) {
            // A counter that is full has been raised.
            let _ = rustix::io::write(&sandbox.alarm, &1_u64.to_ne_bytes());
        }
    }
}

/// The sandbox that holds too many locks, estimated from parts of the list. Reads no more than
/// necessary.
fn find_over_limit(
    read_at: impl Fn(&mut [u8], u64) -> io::Result<usize>,
    mut sandbox_of: impl FnMut(u32) -> Option<u32>,
) -> io::Result<Option<u32>> {
    let mut part = vec![0; 64 * 1024];
    let mut estimates: HashMap<u32, Estimate> = HashMap::new();
    let (mut offset, mut skipped, mut gap) = (0, 0, FIRST_GAP);
    while offset < MAX_LIST_BYTES {
        let length = read_at(&mut part, offset)?;
        if length == 0 {
            return Ok(None);
        }
        let text = String::from_utf8_lossy(&part[..length]);
        let mut counts: HashMap<u32, usize> = HashMap::new();
        for sandbox in text.lines().filter_map(holder).filter_map(&mut sandbox_of) {
            *counts.entry(sandbox).or_default() += 1;
        }
        // Assume that the gap before a part contains the same as the part.
        let weight = 1 + usize::try_from(skipped).unwrap_or(usize::MAX) / length;
        for (sandbox, count) in counts {
            let estimate = estimates.entry(sandbox).or_default();
            estimate.locks += count * weight;
            estimate.parts += 1;
            if estimate.locks > MAX_LOCKS && estimate.parts >= MIN_PARTS {
                return Ok(Some(sandbox));
            }
        }
        offset += length as u64 + gap;
        skipped = gap;
        gap += gap / 2;
    }
    let most = estimates.into_iter().filter(|(_, estimate)| estimate.parts >= MIN_PARTS);
    let most = most.max_by_key(|(_, estimate)| estimate.locks);
    Ok(most.filter(|(_, most)| most.locks > MAX_LOCKS_UNDER_PRESSURE).map(|(sandbox, _)| sandbox))
}

/// What one sandbox holds, in the part of the list that was read.
#[derive(Default)]
struct Estimate {
    locks: usize,
    /// Number of parts that contain its locks.
    parts: usize,
}

/// The process that holds the lock of a line of `/proc/locks`. `None` for open file description
/// locks, which have no process: the filter denies them.
fn holder(line: &str) -> Option<u32> {
    let mut fields = line.split_ascii_whitespace().skip(1).skip_while(|field| *field == "->");
    fields.nth(3)?.parse().ok()
}

/// Which of these processes is `process` or an ancestor of it.
fn ancestor_in(inits: &[u32], process: u32, known: &mut HashMap<u32, Option<u32>>) -> Option<u32> {
    let mut path = Vec::new();
    let mut at = process;
    let found = loop {
        if inits.contains(&at) {
            break Some(at);
        }
        if let Some(found) = known.get(&at) {
            break *found;
        }
        path.push(at);
        match parent(at) {
            Some(parent) if parent > 1 && path.len() < MAX_ANCESTORS => at = parent,
            _ => break None,
        }
    };
    known.extend(path.into_iter().map(|process| (process, found)));
    found
}

fn parent(process: u32) -> Option<u32> {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name before the last bracket may contain anything.
    text.rsplit_once(')')?.1.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// How many lock objects the kernel has, or a number that grows with them.
fn count_locks() -> io::Result<u64> {
    if let Ok(text) = fs::read_to_string(LOCK_OBJECTS)
        && let Some(count) = text.split_ascii_whitespace().next().and_then(|text| text.parse().ok())
    {
        return Ok(count);
    }
    Ok(kernel_kib()? * 1024 / LOCK_BYTES)
}

/// Size of all kernel objects that cannot be reclaimed.
fn kernel_kib() -> io::Result<u64> {
    let text = fs::read_to_string("/proc/meminfo")?;
    let kib = text.lines().find_map(|line| line.strip_prefix("SUnreclaim:"));
    let kib = kib.and_then(|rest| rest.split_ascii_whitespace().next()?.parse().ok());
    kib.ok_or_else(|| io::ErrorKind::InvalidData.into())
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;

    /// The sandbox that is found for a list of locks of these processes. Sandbox 7 has PIDs from
    /// 700 to 799.
    fn over(locks: impl IntoIterator<Item = u32>) -> Option<u32> {
        let mut list = String::new();
        for (place, process) in locks.into_iter().enumerate() {
            let at = format_args!("00:2f:{place} 1998 1998");
            writeln!(list, "{place}: POSIX  ADVISORY  WRITE {process} {at}").unwrap();
        }
        let read_at = |part: &mut [u8], offset: u64| {
            let rest = list.as_bytes().get(usize::try_from(offset).unwrap()..).unwrap_or_default();
            // Like the kernel: whole lines that fit in a page.
            let page = &rest[..rest.len().min(4096)];
            let length = page.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
            part[..length].copy_from_slice(&page[..length]);
            Ok(length)
        };
        find_over_limit(read_at, |process| (process >= 100).then_some(process / 100)).unwrap()
    }

    #[test]
    fn a_sandbox_with_too_many_locks_is_found_whichever_of_its_processes_hold_them() {
        let of_several = |count| (0..count).map(|place| 700 + place % 50);
        assert_eq!(over(of_several(20_000)), Some(7));
        assert_eq!(over(of_several(20_000).chain(vec![1; 12_000])), Some(7));
        assert_eq!(over((0..40_000).map(|place| if place % 2 == 0 { 1 } else { 755 })), Some(7));
        assert_eq!(over(of_several(6000)), None);
        assert_eq!(over(vec![1; 20_000]), None);
    }

    #[test]
    fn locks_in_one_place_of_a_long_list_do_not_count_for_all_around_them() {
        for place in [0, 5000, 20_000, 50_000] {
            let before = vec![1; place];
            assert_eq!(over(before.into_iter().chain([700; 500]).chain(vec![1; 20_000])), None);
        }
    }

    #[test]
    fn the_largest_holder_answers_for_a_list_that_is_too_long() {
        let most = 200_000;
        let mixed = (0..most).map(|place| [100, 1, 200, 1, 1, 100, 1, 1, 100][place % 9] + 50);
        assert!(over(mixed).is_some());
        assert_eq!(over((0..most).map(|_| 1)), None);
    }

    #[test]
    fn the_holder_of_a_lock_stands_in_its_line_whether_it_is_held_or_waited_for() {
        assert_eq!(holder("1: POSIX  ADVISORY  WRITE 4711 00:2f:2 0 EOF"), Some(4711));
        assert_eq!(holder("2: -> FLOCK  ADVISORY  READ 12 00:2f:2 0 EOF"), Some(12));
        assert_eq!(holder("3: OFDLCK ADVISORY  WRITE -1 00:2f:2 0 0"), None);
        assert_eq!(holder(""), None);
    }

    #[test]
    fn this_process_descends_from_its_parent() {
        let (own, parent) = (std::process::id(), parent(std::process::id()).unwrap());
        assert_eq!(ancestor_in(&[parent], own, &mut HashMap::new()), Some(parent));
        assert_eq!(ancestor_in(&[own], own, &mut HashMap::new()), Some(own));
        assert_eq!(ancestor_in(&[u32::MAX], own, &mut HashMap::new()), None);
    }
}
