//! Taking used slots down, and proving that nothing is left of them.
//!
//! It is work for the kernel that nobody waits for, and it would take the CPU from what was started since.
//! So it is put off for a moment while something runs.

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

/// Used slots that may wait to be taken down before executions have to wait for that.
const MOST: usize = 64;
/// Bytes that used slots may hold together before executions have to wait. Whoever counts the memory of executions
/// takes that of one as free when it has ended.
const MAX_HELD_BYTES: u64 = 256 << 20;
/// With so many it begins, whatever else runs.
const ENOUGH: usize = 16;
/// After this time it begins, whatever else runs.
const RETIRE_TIMEOUT: Duration = Duration::from_millis(50);
/// After a program's end its last process is gone at once; longer than this is a fault of ours.
const TAKE_DOWN_TIME: Duration = Duration::from_secs(5);

/// The slots that are to be taken down, and the thread that does it.
pub(crate) struct Retirement {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    state: Mutex<State>,
    /// Something has changed for the thread.
    changed: Condvar,
    /// There is room again.
    room: Condvar,
}

#[derive(Default)]
struct State {
    /// Each with the bytes that it holds.
    waiting: VecDeque<(Slot, u64)>,
    /// Bytes of all that are not gone yet, those that are being taken down included.
    held_bytes: u64,
    /// Executions that have ended and wait for room.
    kept_out: usize,
    /// Executions underway.
    busy: usize,
    closing: bool,
}

impl Retirement {
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

    /// An execution has begun.
    pub(crate) fn begun(&self) {
        self.shared.lock().busy += 1;
    }

    /// An execution has ended, and its slot, which holds so many bytes, is of no more use. Somebody has to remind us of it.
    pub(crate) fn ended(&self, slot: Option<Slot>, bytes: u64) {
        let mut state = self.shared.lock();
        state.busy = state.busy.saturating_sub(1);
        let Some(slot) = slot else { return };
        state.kept_out += 1;
        while state.waiting.len() >= MOST || !fits(state.held_bytes, bytes) {
            self.shared.changed.notify_one();
            state = self.shared.room.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.kept_out -= 1;
        state.held_bytes += bytes;
        state.waiting.push_back((slot, bytes));
        if state.waiting.len() >= ENOUGH {
            self.shared.changed.notify_one();
        }
    }

    /// Lets the thread look whether it is time.
    pub(crate) fn remind(&self) {
        self.shared.changed.notify_one();
    }

    /// Takes down a slot that was not used.
    pub(crate) fn discard(&self, slot: Slot) {
        self.shared.lock().waiting.push_back((slot, 0));
        self.shared.changed.notify_one();
    }
}

impl Drop for Retirement {
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
                take_down(slot);
                self.lock().held_bytes -= bytes;
                self.room.notify_all();
            }
        }
    }

    /// What is to be taken down now; none when there is nothing left and nothing will come.
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
                || state.waiting.len() >= ENOUGH
                || waited >= RETIRE_TIMEOUT;
            if is_time {
                self.room.notify_all();
                return Some(std::mem::take(&mut state.waiting));
            }
            let changed = self.changed.wait_timeout(state, RETIRE_TIMEOUT.saturating_sub(waited));
            state = changed.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// Whether a slot that holds so many bytes can wait beside others. One that is alone always can.
fn fits(held_bytes: u64, bytes: u64) -> bool {
    held_bytes == 0 || held_bytes.saturating_add(bytes) <= MAX_HELD_BYTES
}

/// Ends what is left of a slot and removes its cgroup.
pub(crate) fn take_down(slot: Slot) {
    let Slot { socket, cgroup, init, charges, .. } = slot;
    // Init may wait for an order that will not come, or be left over from a failure of ours; one that
    // has ended by itself does not mind.
    let _ = pidfd_send_signal(&init, Signal::KILL);
    is_closed(&socket, TAKE_DOWN_TIME);
    // What cannot be removed even so is swept at the next start.
    let _ = cgroup.dissolve();
    drop((socket, init));
    // What it was counted by is free when nothing is left of it.
    drop(charges);
}

/// Whether the other side is closed, or is so within this time.
pub(crate) fn is_closed(socket: &OwnedFd, patience: Duration) -> bool {
    let deadline = Instant::now() + patience;
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
