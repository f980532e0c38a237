//! Lines of the log that are written a moment after they were made.
//!
//! A line about a request is made when its answer is on its way, and to write it there and then would hold the
//! answer up by more than anything else that is done after a program has ended. So a thread writes what
//! gathered. What went wrong is written at once, with everything before it: whoever looks for the reason of a
//! crash finds it.

use std::io::{self, Write};
use std::mem;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use tracing::{Level, Metadata};
use tracing_subscriber::fmt::MakeWriter;

/// How long a line waits at most.
const PAUSE: Duration = Duration::from_millis(20);
/// So much is not kept in memory.
const MUCH: usize = 64 * 1024;
/// After so many looks in vain the thread sleeps until it is woken: waking it is what a line should not
/// cost while requests come.
const LOOKS: u32 = 50;

/// Where lines go first.
#[derive(Clone)]
pub(super) struct Late(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    woken: Condvar,
}

struct State {
    lines: Vec<u8>,
    /// Where they go then.
    end: Box<dyn Write + Send>,
    is_asleep: bool,
    is_over: bool,
}

/// Writes what is left when it is dropped.
#[must_use = "lines are lost that nobody writes"]
pub(crate) struct LastLines(Late);

/// Takes one line.
pub(super) struct Line {
    late: Late,
    is_urgent: bool,
}

impl Late {
    /// Starts the thread that writes to this end.
    pub(super) fn start(end: impl Write + Send + 'static) -> io::Result<(Self, LastLines)> {
        let end = Box::new(end);
        let state = State { lines: Vec::new(), end, is_asleep: false, is_over: false };
        let late = Self(Arc::new(Shared { state: Mutex::new(state), woken: Condvar::new() }));
        let writer = late.clone();
        thread::Builder::new().name("log".to_owned()).spawn(move || writer.write_what_gathers())?;
        Ok((late.clone(), LastLines(late)))
    }

    fn write_what_gathers(&self) {
        let mut looks = 0;
        loop {
            thread::sleep(PAUSE);
            let mut state = self.lock();
            looks = if state.lines.is_empty() { looks + 1 } else { 0 };
            state.write();
            while looks >= LOOKS && state.lines.is_empty() && !state.is_over {
                state.is_asleep = true;
                state = self.0.woken.wait(state).unwrap_or_else(PoisonError::into_inner);
                state.is_asleep = false;
            }
            if state.is_over {
                return;
            }
        }
    }

    /// A line is gathered whole or not at all, so that a panic leaves nothing half done.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn write(&mut self) {
        let lines = mem::take(&mut self.lines);
        // A log that cannot be written has nowhere to say so.
        let _ = self.end.write_all(&lines).and_then(|()| self.end.flush());
    }
}

impl Write for Line {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut state = self.late.lock();
        state.lines.extend_from_slice(bytes);
        // After the end there is no thread.
        if self.is_urgent || state.is_over || state.lines.len() >= MUCH {
            state.write();
        } else if state.is_asleep {
            self.late.0.woken.notify_one();
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Late {
    type Writer = Line;

    fn make_writer(&'a self) -> Line {
        Line { late: self.clone(), is_urgent: true }
    }

    fn make_writer_for(&'a self, about: &Metadata<'_>) -> Line {
        Line { late: self.clone(), is_urgent: *about.level() <= Level::WARN }
    }
}

impl Drop for LastLines {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.is_over = true;
        state.write();
        self.0.0.woken.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    struct Sent(Sender<Vec<u8>>);

    impl Write for Sent {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let _ = self.0.send(bytes.to_vec());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn start() -> (Late, LastLines, Receiver<Vec<u8>>) {
        let (sender, written) = channel();
        let (late, last) = Late::start(Sent(sender)).unwrap();
        (late, last, written)
    }

    fn line(late: &Late, is_urgent: bool, text: &str) {
        Line { late: late.clone(), is_urgent }.write_all(text.as_bytes()).unwrap();
    }

    #[test]
    fn lines_are_written_without_being_asked_for() {
        let (late, _last, written) = start();
        line(&late, false, "one\n");
        assert_eq!(written.recv().unwrap(), b"one\n");
        // Also when the thread has gone to sleep.
        while !late.lock().is_asleep {
            thread::yield_now();
        }
        line(&late, false, "two\n");
        assert_eq!(written.recv().unwrap(), b"two\n");
    }

    #[test]
    fn what_is_urgent_is_written_at_once_and_after_what_was_before() {
        let (late, _last, written) = start();
        line(&late, false, "before\n");
        line(&late, true, "urgent\n");
        let now: Vec<u8> = written.try_iter().flatten().collect();
        assert_eq!(String::from_utf8(now).unwrap(), "before\nurgent\n");
    }

    #[test]
    fn nothing_is_lost_at_the_end() {
        let (late, last, written) = start();
        line(&late, false, "last\n");
        drop(last);
        line(&late, false, "after\n");
        let now: Vec<u8> = written.try_iter().flatten().collect();
        assert_eq!(String::from_utf8(now).unwrap(), "last\nafter\n");
    }

    #[test]
    fn much_is_not_kept() {
        let (late, _last, written) = start();
        line(&late, false, &"x".repeat(MUCH));
        assert_eq!(written.try_iter().map(|bytes| bytes.len()).sum::<usize>(), MUCH);
    }
}
