use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::thread::{self, JoinHandle};

use sandbox_core::{CancelToken, Event, ExecutionId, Report};

use crate::ExecuteError;
use crate::engine::{Engine, Job};
use crate::events::Events;

/// An execution on its own thread. Dropping it kills the program and waits until its sandbox is removed.
///
/// Events are queued, so that a slow reader delays neither the program nor its time limits. The output limit bounds
/// the queue.
#[derive(Debug)]
pub struct Execution {
    id: ExecutionId,
    cancel: CancelToken,
    /// `None` once there is no reader: the thread's sends then fail at once.
    events: Option<Receiver<Event>>,
    /// `None` after `wait`.
    thread: Option<JoinHandle<Result<Report, ExecuteError>>>,
}

impl Execution {
    pub(crate) fn begin(engine: Arc<Engine>, job: Job) -> Result<Self, ExecuteError> {
        let id = job.id();
        let cancel = CancelToken::new();
        let (sender, receiver) = mpsc::channel();
        let token = cancel.clone();
        let thread = thread::Builder::new()
            .name("sandbox-execution".to_owned())
            .spawn(move || {
                let mut listener = move |event: &Event| {
                    // Without a reader the execution continues: the report is still wanted.
                    let _ = sender.send(event.clone());
                };
                engine.execute(&job, &mut Events::new(Some(&mut listener)), &token)
            })
            .map_err(ExecuteError::Thread)?;
        Ok(Self { id, cancel, events: Some(receiver), thread: Some(thread) })
    }

    /// The id of this execution.
    pub fn id(&self) -> ExecutionId {
        self.id
    }

    /// The events as they happen. Ends after the last event.
    pub fn events(&mut self) -> impl Iterator<Item = Event> + '_ {
        self.events.iter().flat_map(Receiver::iter)
    }

    /// Cancels the execution. The report then has the status `cancelled`, unless the program ended first.
    pub fn cancel(&self) {
        self.cancel.cancel();
    }

    /// A token that cancels this execution from elsewhere.
    pub fn cancel_token(&self) -> CancelToken {
        self.cancel.clone()
    }

    /// Waits for the end and returns the report. Unread events are dropped.
    pub fn wait(mut self) -> Result<Report, ExecuteError> {
        self.events = None;
        let thread = self
            .thread
            .take()
            .expect("only `wait` takes the thread, and it consumes the execution");
        match thread.join() {
            Ok(result) => result,
            // A panic in a hook or a backend is a bug: pass it on to the caller.
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

impl Drop for Execution {
    fn drop(&mut self) {
        self.cancel.cancel();
        self.events = None;
        if let Some(thread) = self.thread.take() {
            // The panic was printed when it happened; a destructor cannot pass it on.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripted::{Scripted, exited};
    use sandbox_core::{Ending, EventKind, Request, StageOutcome, Status, StreamKind};
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    fn begin(scripted: Scripted) -> Execution {
        let engine = Arc::new(scripted.engine(Vec::new()));
        let request = Request::builder("script").code("").build().unwrap();
        let job = engine.accept(request).unwrap();
        Execution::begin(engine, job).unwrap()
    }

    /// A stage that runs until it is cancelled, and then sets `ended`.
    fn until_cancelled(ended: &Arc<AtomicBool>) -> Scripted {
        let ended = Arc::clone(ended);
        Scripted::new().then(move |_, _, cancel| {
            let (sender, receiver) = mpsc::channel();
            let _registration = cancel.on_cancel(move || {
                let _ = sender.send(());
            });
            receiver.recv_timeout(Duration::from_secs(30)).expect("nobody cancelled");
            ended.store(true, Ordering::SeqCst);
            Ok(StageOutcome::new(Ending::Cancelled))
        })
    }

    fn chatter(chunks: usize) -> Scripted {
        Scripted::new().then(move |_, observer, _| {
            for _ in 0..chunks {
                observer.output(StreamKind::Stdout, b"x");
            }
            Ok(exited(0))
        })
    }

    #[test]
    fn events_arrive_without_gaps_and_end_with_the_report() {
        let chunks = 1000;
        let mut execution = begin(chatter(chunks));
        let events: Vec<Event> = execution.events().collect();
        assert_eq!(events.len(), chunks + 3);
        for (position, event) in events.iter().enumerate() {
            assert_eq!(event.seq, position as u64 + 1);
        }
        assert!(matches!(events.last().unwrap().kind, EventKind::Report(_)));
        let id = execution.id();
        assert_eq!(execution.wait().unwrap().id, id);
    }

    #[test]
    fn waiting_does_not_need_a_reader() {
        let report = begin(chatter(1000)).wait().unwrap();
        assert_eq!(report.status, Status::Completed);
    }

    #[test]
    fn cancelling_by_handle_or_by_token_ends_the_execution() {
        let ended = Arc::new(AtomicBool::new(false));
        let execution = begin(until_cancelled(&ended));
        execution.cancel();
        assert_eq!(execution.wait().unwrap().status, Status::Cancelled);

        let execution = begin(until_cancelled(&ended));
        let token = execution.cancel_token();
        thread::spawn(move || token.cancel());
        assert_eq!(execution.wait().unwrap().status, Status::Cancelled);
    }

    #[test]
    fn dropping_the_handle_cancels_and_waits() {
        let ended = Arc::new(AtomicBool::new(false));
        let mut execution = begin(until_cancelled(&ended));
        // Two events: queued, and the stage, which therefore has begun.
        assert_eq!(execution.events().take(2).count(), 2);
        drop(execution);
        assert!(ended.load(Ordering::SeqCst), "the stage was still running");
    }
}
