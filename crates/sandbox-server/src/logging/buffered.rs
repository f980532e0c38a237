//! A log writer that buffers lines and writes them from a thread of its own.
//!
//! Writing the line of a request synchronously would delay its response more than any other step after the end of the
//! program. Warnings and errors are written at once, with the lines before them, so that the log is complete up to the
//! cause of a crash.

use std::io::{self, Write};
use std::mem;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use tracing::{Level, Metadata};
use tracing_subscriber::fmt::MakeWriter;

/// The maximum delay of a line.
const FLUSH_INTERVAL: Duration = Duration::from_millis(20);
/// Flush above this size.
const MAX_BUFFERED_BYTES: usize = 64 * 1024;
/// After this many intervals without a line, the thread sleeps until a line wakes it. Before that no line pays for the
/// wake-up.
const MAX_IDLE_INTERVALS: u32 = 50;

/// Creates a [`Line`] for each event.
#[derive(Clone)]
pub(super) struct BufferedWriter(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    woken: Condvar,
}

struct State {
    buffer: Vec<u8>,
    output: Box<dyn Write + Send>,
    is_asleep: bool,
    is_closed: bool,
}

/// Flushes the buffer on drop. After that, lines are written synchronously.
#[must_use = "dropping the guard ends buffering"]
pub(crate) struct FlushGuard(BufferedWriter);

/// The writer of one line.
pub(super) struct Line {
    writer: BufferedWriter,
    is_urgent: bool,
}

impl BufferedWriter {
    /// Starts the thread that writes to `output`.
    pub(super) fn start(output: impl Write + Send + 'static) -> io::Result<(Self, FlushGuard)> {
        let output = Box::new(output);
        let state = State { buffer: Vec::new(), output, is_asleep: false, is_closed: false };
        let writer = Self(Arc::new(Shared { state: Mutex::new(state), woken: Condvar::new() }));
        let thread = writer.clone();
        thread::Builder::new().name("log".to_owned()).spawn(move || thread.flush_periodically())?;
        Ok((writer.clone(), FlushGuard(writer)))
    }

    fn flush_periodically(&self) {
        let mut idle = 0;
        loop {
            thread::sleep(FLUSH_INTERVAL);
            let mut state = self.lock();
            idle = if state.buffer.is_empty() { idle + 1 } else { 0 };
            state.flush();
            while idle >= MAX_IDLE_INTERVALS && state.buffer.is_empty() && !state.is_closed {
                state.is_asleep = true;
                state = self.0.woken.wait(state).unwrap_or_else(PoisonError::into_inner);
                state.is_asleep = false;
            }
            if state.is_closed {
                return;
            }
        }
    }

    /// A panic cannot leave a partial line, so a poisoned lock is usable.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn flush(&mut self) {
        let lines = mem::take(&mut self.buffer);
        // There is no other place to report that the log cannot be written.
        let _ = self.output.write_all(&lines).and_then(|()| self.output.flush());
    }
}

impl Write for Line {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut state = self.writer.lock();
        state.buffer.extend_from_slice(bytes);
        // Once closed, there is no thread.
        if self.is_urgent || state.is_closed || state.buffer.len() >= MAX_BUFFERED_BYTES {
            state.flush();
        } else if state.is_asleep {
            self.writer.0.woken.notify_one();
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for BufferedWriter {
    type Writer = Line;

    fn make_writer(&'a self) -> Line {
        Line { writer: self.clone(), is_urgent: true }
    }

    fn make_writer_for(&'a self, metadata: &Metadata<'_>) -> Line {
        Line { writer: self.clone(), is_urgent: *metadata.level() <= Level::WARN }
    }
}

impl Drop for FlushGuard {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.is_closed = true;
        state.flush();
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

    fn start() -> (BufferedWriter, FlushGuard, Receiver<Vec<u8>>) {
        let (sender, written) = channel();
        let (writer, guard) = BufferedWriter::start(Sent(sender)).unwrap();
        (writer, guard, written)
    }

    fn line(writer: &BufferedWriter, is_urgent: bool, text: &str) {
        Line { writer: writer.clone(), is_urgent }.write_all(text.as_bytes()).unwrap();
    }

    #[test]
    fn lines_are_flushed_periodically() {
        let (writer, _guard, written) = start();
        line(&writer, false, "one\n");
        assert_eq!(written.recv().unwrap(), b"one\n");
        // Also when the thread is asleep.
        while !writer.lock().is_asleep {
            thread::yield_now();
        }
        line(&writer, false, "two\n");
        assert_eq!(written.recv().unwrap(), b"two\n");
    }

    #[test]
    fn an_urgent_line_flushes_the_lines_before_it() {
        let (writer, _guard, written) = start();
        line(&writer, false, "before\n");
        line(&writer, true, "urgent\n");
        let now: Vec<u8> = written.try_iter().flatten().collect();
        assert_eq!(String::from_utf8(now).unwrap(), "before\nurgent\n");
    }

    #[test]
    fn dropping_the_guard_flushes() {
        let (writer, guard, written) = start();
        line(&writer, false, "last\n");
        drop(guard);
        line(&writer, false, "after\n");
        let now: Vec<u8> = written.try_iter().flatten().collect();
        assert_eq!(String::from_utf8(now).unwrap(), "last\nafter\n");
    }

    #[test]
    fn a_full_buffer_is_flushed() {
        let (writer, _guard, written) = start();
        line(&writer, false, &"x".repeat(MAX_BUFFERED_BYTES));
        assert_eq!(written.try_iter().map(|bytes| bytes.len()).sum::<usize>(), MAX_BUFFERED_BYTES);
    }
}
