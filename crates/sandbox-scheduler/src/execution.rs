//! One unfinished execution, and everyone who waits for it.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use chrono::{DateTime, Utc};
use sandbox::{
    Acceptance, CancelToken, Event, EventKind, Report, Request, Requirements, Sandbox, Status,
    WorkspaceAccess,
};
use sandbox_store::{Idempotency, Job, NewExecution, Store, StoredEvent};
use tokio::runtime::Handle;
use tokio::sync::{SetOnce, watch};

use crate::journal::{Journal, Reading};
use crate::lock::lock;
use crate::observer::{Completion, ExecutionObserver};
use crate::report::StoredReport;

/// All executions have the same priority.
pub(crate) const PRIORITY: i32 = 0;

/// An execution from its acceptance to its end.
pub(crate) struct Execution {
    pub(crate) id: String,
    pub(crate) owner: Option<String>,
    pub(crate) requirements: Requirements,
    /// The sandbox that it runs in.
    pub(crate) sandbox: Arc<Sandbox>,
    pub(crate) idempotency: Option<Idempotency>,
    pub(crate) created_at: DateTime<Utc>,
    /// The owner's workspace that it may write to.
    pub(crate) writes_to: Option<String>,
    /// The time of acceptance on the monotonic clock.
    pub(crate) accepted: Instant,
    /// The number of earlier attempts.
    attempts: u32,
    observer: Box<dyn ExecutionObserver>,
    /// Kills the program.
    pub(crate) cancel: CancelToken,
    /// Whether the client cancelled it, and not a server that stops.
    cancelled_by_client: AtomicBool,
    /// Whether another worker has the execution now.
    lease_lost: AtomicBool,
    /// The request, until it is started.
    request: Mutex<Option<Request>>,
    started_at: Mutex<Option<DateTime<Utc>>>,
    journal: Mutex<Journal>,
    /// The record to insert, of an execution that is stored late: its client was not told its id, or follows its events.
    unstored: Mutex<Option<NewExecution>>,
    /// Whether there was such a record.
    stored_later: AtomicBool,
    /// Set when the store has the execution.
    stored: SetOnce<()>,
    /// Set when the store has the start of this attempt.
    start_stored: SetOnce<()>,
    /// Set when the first attempt to store the result succeeded or failed.
    result_stored: SetOnce<bool>,
    /// Sent to with every event.
    changed: watch::Sender<()>,
    outcome: watch::Sender<Option<Outcome>>,
}

/// What a new [`Execution`] consists of.
pub(crate) struct ExecutionParts {
    pub(crate) owner: Option<String>,
    pub(crate) sandbox: Arc<Sandbox>,
    pub(crate) request: Request,
    pub(crate) requirements: Requirements,
    pub(crate) idempotency: Option<Idempotency>,
    pub(crate) created_at: DateTime<Utc>,
    /// The number of earlier attempts.
    pub(crate) attempts: u32,
    pub(crate) observer: Box<dyn ExecutionObserver>,
}

/// How this process is done with an execution.
#[derive(Clone, Debug)]
pub(crate) enum Outcome {
    /// It finished.
    Finished(StoredReport),
    /// Another worker runs it, or this server once it has restarted.
    Requeued,
}

impl Execution {
    pub(crate) fn new(parts: ExecutionParts) -> Self {
        let execution = Self {
            id: parts.request.id().to_string(),
            writes_to: written_workspace(&parts.request),
            owner: parts.owner,
            requirements: parts.requirements,
            sandbox: parts.sandbox,
            idempotency: parts.idempotency,
            created_at: parts.created_at,
            accepted: Instant::now(),
            attempts: parts.attempts,
            observer: parts.observer,
            cancel: CancelToken::new(),
            cancelled_by_client: AtomicBool::new(false),
            lease_lost: AtomicBool::new(false),
            request: Mutex::new(Some(parts.request)),
            started_at: Mutex::new(None),
            journal: Mutex::new(Journal::after(parts.attempts)),
            unstored: Mutex::new(None),
            stored_later: AtomicBool::new(false),
            stored: SetOnce::new(),
            start_stored: SetOnce::new(),
            result_stored: SetOnce::new(),
            changed: watch::Sender::new(()),
            outcome: watch::Sender::new(None),
        };
        lock(&execution.journal).add(EventKind::Queued);
        execution
    }

    /// Its entry in the queue.
    pub(crate) fn job(&self) -> Job {
        Job {
            id: self.id.clone(),
            owner: self.owner.clone(),
            priority: PRIORITY,
            memory: self.requirements.memory.as_u64(),
            attempts: self.attempts,
        }
    }

    /// Leaves it to others to store this record.
    pub(crate) fn store_later(&self, new: NewExecution) {
        self.stored_later.store(true, Ordering::SeqCst);
        *lock(&self.unstored) = Some(new);
    }

    /// Takes the record back, to store it at once.
    pub(crate) fn store_now(&self) -> Option<NewExecution> {
        self.stored_later.store(false, Ordering::SeqCst);
        lock(&self.unstored).take()
    }

    /// Whether it is stored later than at its acceptance.
    pub(crate) fn is_stored_later(&self) -> bool {
        self.stored_later.load(Ordering::SeqCst)
    }

    /// The bytes that it keeps in memory while it waits: the contents of the request, and its stored form if that is
    /// not in the store yet.
    pub(crate) fn waiting_bytes(&self) -> u64 {
        let contents = lock(&self.request).as_ref().map_or(0, Request::content_bytes);
        let unstored = lock(&self.unstored).as_ref().map_or(0, |new| new.request.len() as u64);
        contents.saturating_add(unstored)
    }

    /// Whether its record is still to be stored.
    pub(crate) fn is_unstored(&self) -> bool {
        lock(&self.unstored).is_some()
    }

    /// Whether it was started.
    pub(crate) fn is_started(&self) -> bool {
        lock(&self.started_at).is_some()
    }

    /// Takes the record that is still to be stored. The caller stores it and calls [`Self::set_stored`].
    pub(crate) fn take_unstored(&self) -> Option<NewExecution> {
        let new = lock(&self.unstored).take()?;
        Some(NewExecution { started_at: *lock(&self.started_at), ..new })
    }

    /// The store has it, or refused it: nobody waits for it for ever.
    pub(crate) fn set_stored(&self) {
        // Only the first call counts.
        let _ = self.stored.set(());
    }

    /// The store has it and its start.
    pub(crate) fn set_start_stored(&self) {
        self.set_stored();
        let _ = self.start_stored.set(());
    }

    /// Waits until the store has its start.
    pub(crate) async fn start_stored(&self) {
        self.start_stored.wait().await;
    }

    /// Blocks this thread until the store has its start, unless nobody was told its id.
    pub(crate) fn block_until_start_stored(&self, runtime: &Handle) {
        if !self.start_stored.initialized() && !self.is_unstored() {
            tokio::task::block_in_place(|| runtime.block_on(self.start_stored()));
        }
    }

    /// Whether storing its start was attempted.
    pub(crate) fn is_start_stored(&self) -> bool {
        self.start_stored.initialized()
    }

    /// Its result was stored, or could not be. Only the first attempt counts: that is what clients are told.
    pub(crate) fn set_result_stored(&self, is_stored: bool) {
        let _ = self.result_stored.set(is_stored);
    }

    /// Waits until its result was stored, or could not be.
    pub(crate) async fn result_stored(&self) -> bool {
        *self.result_stored.wait().await
    }

    /// Waits until the store has it or has refused it.
    pub(crate) async fn stored(&self) {
        self.stored.wait().await;
    }

    /// Takes the request, to run it.
    pub(crate) fn start(&self, at: DateTime<Utc>) -> Option<Request> {
        *lock(&self.started_at) = Some(at);
        lock(&self.request).take()
    }

    /// Takes the request, to end it without running it.
    pub(crate) fn take_request(&self) -> Option<Request> {
        lock(&self.request).take()
    }

    /// Cancels it on behalf of the client.
    pub(crate) fn cancel_by_client(&self) {
        self.cancelled_by_client.store(true, Ordering::SeqCst);
        self.cancel.cancel();
    }

    pub(crate) fn is_cancelled_by_client(&self) -> bool {
        self.cancelled_by_client.load(Ordering::SeqCst)
    }

    /// Ends this attempt: another worker has the execution now.
    pub(crate) fn lose_lease(&self) {
        self.lease_lost.store(true, Ordering::SeqCst);
        self.cancel.cancel();
    }

    pub(crate) fn is_lease_lost(&self) -> bool {
        self.lease_lost.load(Ordering::SeqCst)
    }

    /// Records an event of the library.
    pub(crate) fn record(&self, event: &Event) {
        self.observer.event(&event.kind);
        let mut journal = lock(&self.journal);
        match &event.kind {
            // `Queued` was recorded at acceptance; the report is added when it is stored.
            EventKind::Queued | EventKind::Report(_) => return,
            EventKind::Output(stream, bytes) => journal.write(*stream, bytes),
            EventKind::Usage(_) if journal.drops_usage() => return,
            other => journal.add(other.clone()),
        }
        drop(journal);
        self.changed.send_replace(());
    }

    /// Ends the journal and returns all events, to be stored with the result.
    pub(crate) fn close_journal(&self) -> Vec<StoredEvent> {
        lock(&self.journal).close()
    }

    /// Wakes everyone who waits for the end.
    pub(crate) fn end(&self, outcome: Outcome) {
        if matches!(outcome, Outcome::Requeued) {
            *lock(&self.started_at) = None;
        }
        self.outcome.send_replace(Some(outcome));
        self.changed.send_replace(());
    }

    /// Notifies the observer of the end.
    pub(crate) fn observe_end(&self, report: &Report) {
        let queued = std::time::Duration::from_secs_f64(report.timings_ms.queue / 1e3);
        self.observer.finished(&Completion {
            id: &self.id,
            owner: self.owner.as_deref(),
            report,
            created_at: self.created_at,
            accepted: self.accepted,
            queued,
        });
    }

    /// Reads the events after this sequence number that exist now.
    pub(crate) fn read(&self, after: u64) -> Reading {
        lock(&self.journal).read(after)
    }

    /// Subscribes to changes: events and the end.
    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// How it ended, if it did.
    pub(crate) fn outcome(&self) -> Option<Outcome> {
        self.outcome.borrow().clone()
    }

    /// Waits until it ended.
    pub(crate) async fn ended(&self) {
        // The sender lives as long as this value, so waiting cannot fail before there is an outcome.
        let _ = self.outcome.subscribe().wait_for(Option::is_some).await;
    }

    /// Its current or final report.
    pub(crate) fn report(&self) -> StoredReport {
        if let Some(Outcome::Finished(report)) = self.outcome() {
            return report;
        }
        let started_at = *lock(&self.started_at);
        let status = if started_at.is_some() { Status::Running } else { Status::Queued };
        let language = &self.requirements.language;
        StoredReport::unfinished(&self.id, status, language, self.created_at, started_at)
    }

    /// A report of it as clients get it. The result is written in the background; only if the store is degraded, this waits
    /// for the outcome of the write, and a report that is not stored says so.
    pub(crate) async fn with_stored(
        &self,
        report: StoredReport,
        store: &dyn Store,
    ) -> StoredReport {
        if report.is_final() && store.is_degraded() && !self.result_stored().await {
            return report.not_stored();
        }
        report
    }

    /// When it was accepted, and how long that is ago.
    pub(crate) fn acceptance(&self) -> Acceptance {
        Acceptance { at: self.created_at, waited: self.accepted.elapsed() }
    }
}

impl fmt::Debug for Execution {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Execution").field("id", &self.id).finish_non_exhaustive()
    }
}

/// The workspace that a request may write to.
fn written_workspace(request: &Request) -> Option<String> {
    let choice = request.workspace()?;
    (choice.access == WorkspaceAccess::ReadWrite).then(|| choice.name.to_string())
}
