//! Tears used slots down and verifies that nothing is left of them.
//!
//! Tearing down takes kernel time for which no caller waits, so it is deferred for a moment while
//! other executions run.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Signal, pidfd_send_signal};
use sandbox_core::BackendError;
use sandbox_linux::Slot;

/// Maximum number of used slots that wait to be torn down; further executions wait.
const MAX_WAITING: usize = 64;
/// Maximum memory that used slots may hold together; further executions wait. Admission control
/// treats the memory of an execution as free when it has ended.
const MAX_HELD_BYTES: u64 = 256 << 20;
/// Tearing down starts at this number of used slots, whatever else runs.
const START_THRESHOLD: usize = 16;
/// Tearing down starts after this time, whatever else runs.
const MAX_DELAY: Duration = Duration::from_millis(50);
/// A sandbox that is torn down for longer than this leaves the background: others wait for what it holds.
const BACKGROUND_TIMEOUT: Duration = Duration::from_millis(100);
/// The last process disappears immediately after a kill; longer than this is an internal error.
const TEAR_DOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// Slots to tear down, and the thread that does it.
pub(crate) struct TeardownQueue {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    state: Mutex<State>,
    /// Notifies the thread of changes.
    changed: Condvar,
    /// Notifies waiting executions that there is room again.
    room: Condvar,
}

#[derive(Default)]
struct State {
    /// Slots and the bytes that each of them holds.
    waiting: VecDeque<(Slot, u64)>,
    /// Bytes that all slots hold, including those that are being torn down.
    held_bytes: u64,
    /// Ended executions that wait for room.
    kept_out: usize,
    /// Executions in progress.
    busy: usize,
    closing: bool,
}

impl TeardownQueue {
    pub(crate) fn start() -> Result<Self, BackendError> {
        let shared = Arc::new(Shared {
            state: Mutex::default(),
            changed: Condvar::new(),
            room: Condvar::new(),
        });
        let for_thread = Arc::clone(&shared);
        let thread = super::spawn("sandbox-retire", move || for_thread.work())?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Registers the start of an execution.
    pub(crate) fn begun(&self) {
        self.shared.lock().busy += 1;
    }

    /// Registers the end of an execution and queues its slot, which holds this many bytes. The
    /// caller must arrange for `wake` to be called later.
    pub(crate) fn ended(&self, slot: Option<Slot>, bytes: u64) {
        let mut state = self.shared.lock();
        state.busy = state.busy.saturating_sub(1);
        let Some(slot) = slot else { return };
        state.kept_out += 1;
        while state.waiting.len() >= MAX_WAITING || !fits(state.held_bytes, bytes) {
            self.shared.changed.notify_one();
            state = self.shared.room.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.kept_out -= 1;
        state.held_bytes += bytes;
        state.waiting.push_back((slot, bytes));
        if state.waiting.len() >= START_THRESHOLD {
            self.shared.changed.notify_one();
        }
    }

    /// Makes the thread check whether it is time to start.
    pub(crate) fn wake(&self) {
        self.shared.changed.notify_one();
    }

    /// Queues an unused slot.
    pub(crate) fn discard(&self, slot: Slot) {
        self.shared.lock().waiting.push_back((slot, 0));
        self.shared.changed.notify_one();
    }
}

impl Drop for TeardownQueue {
    fn drop(&mut self) {
        self.shared.lock().closing = true;
        self.shared.changed.notify_one();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) {
        while let Some(slots) = self.next() {
            for (slot, bytes) in slots {
                tear_down(slot);
                self.lock().held_bytes -= bytes;
                self.room.notify_all();
            }
        }
    }

    /// Waits for slots to tear down; `None` when the queue is closed and empty.
    fn next(&self) -> Option<VecDeque<(Slot, u64)>> {
        let mut state = self.lock();
        let mut since: Option<Instant> = None;
        loop {
            if state.waiting.is_empty() {
                if state.closing {
                    return None;
                }
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let waited = since.get_or_insert_with(Instant::now).elapsed();
            let is_time = state.busy == 0
                || state.closing
                || state.kept_out > 0
                || state.waiting.len() >= START_THRESHOLD
                || waited >= MAX_DELAY;
            if is_time {
                self.room.notify_all();
                return Some(std::mem::take(&mut state.waiting));
            }
            let changed = self.changed.wait_timeout(state, MAX_DELAY.saturating_sub(waited));
            state = changed.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// Whether a slot that holds this many bytes may wait beside others. The only one always may.
fn fits(held_bytes: u64, bytes: u64) -> bool {
    held_bytes == 0 || held_bytes.saturating_add(bytes) <= MAX_HELD_BYTES
}

/// Kills what is left in a slot and removes its cgroup.
pub(crate) fn tear_down(slot: Slot) {
    let Slot { socket, cgroup, init, charges, .. } = slot;
    // Init may still wait for a request, or be left over from a failure. If it has exited, the
    // signal has no effect.
    let _ = pidfd_send_signal(&init, Signal::KILL);
    if !is_closed(&socket, BACKGROUND_TIMEOUT) {
        let _ = cgroup.set_background(false);
        is_closed(&socket, TEAR_DOWN_TIMEOUT);
    }
    // A cgroup that cannot be removed is swept at the next start.
    let _ = cgroup.dissolve();
    drop((socket, init));
    // Release what the slot was charged for.
    drop(charges);
}

/// Whether the other end is closed, or closes within this time.
pub(crate) fn is_closed(socket: &OwnedFd, timeout: Duration) -> bool {
    let deadline = Instant::now() + timeout;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let mut watched = [PollFd::new(socket, PollFlags::RDHUP)];
        let timeout =
            Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: left.subsec_nanos().into() };
        match poll(&mut watched, Some(&timeout)) {
            Err(Errno::INTR) => {}
            polled => return polled.is_ok_and(|count| count > 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_to_be_taken_down_holds_a_bounded_number_of_bytes() {
        assert!(fits(0, u64::MAX), "one that is too large alone has to go too");
        assert!(fits(MAX_HELD_BYTES - 1, 1) && fits(MAX_HELD_BYTES, 0));
        assert!(!fits(MAX_HELD_BYTES, 1) && !fits(1, u64::MAX));
    }
}
