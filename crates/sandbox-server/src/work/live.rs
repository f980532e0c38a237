//! One execution that was accepted and is not over, and everybody who waits for it.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use chrono::{DateTime, Utc};
use sandbox::{Acceptance, CancelToken, Event, EventKind, Request, Requirements, Sandbox, Status};
use sandbox_store::{Idempotency, NewExecution, StoredEvent};
use tokio::runtime::Handle;
use tokio::sync::{SetOnce, watch};

use super::events::{Journal, Reading};
use super::report::Told;
use super::workspace;
use crate::telemetry::{Origin, StageStarts};

/// An execution from acceptance to its end.
pub(super) struct Live {
    pub(super) id: String,
    pub(super) owner: Option<String>,
    pub(super) needs: Requirements,
    /// What it runs in.
    pub(super) sandbox: Arc<Sandbox>,
    pub(super) idempotency: Option<Idempotency>,
    pub(super) created_at: DateTime<Utc>,
    /// The workspace of its owner that it may replace.
    pub(super) writes_to: Option<String>,
    /// The same on a clock that is never set.
    pub(super) accepted: Instant,
    /// The request that asked for it.
    pub(super) origin: Origin,
    /// When its stages began.
    pub(super) stages: StageStarts,
    /// Ends the program, whoever asks.
    pub(super) cancel: CancelToken,
    /// Whether it was the client who asked, and not the server that stops.
    cancelled_by_client: AtomicBool,
    /// What is to be carried out, until somebody begins to.
    request: Mutex<Option<Request>>,
    started_at: Mutex<Option<DateTime<Utc>>>,
    journal: Mutex<Journal>,
    /// What is still to be stored, of an execution that nobody was told the id of.
    unstored: Mutex<Option<NewExecution>>,
    /// Set when the store has it.
    stored: SetOnce<()>,
    /// Set when the store has that this attempt was begun.
    begin_stored: SetOnce<()>,
    /// Set when its end was stored, or could not be.
    end_stored: SetOnce<bool>,
    /// Changes with every event; the value says nothing.
    news: watch::Sender<()>,
    outcome: watch::Sender<Option<Outcome>>,
}

/// How it went out of our hands.
#[derive(Clone, Debug)]
pub(super) enum Outcome {
    /// It is over.
    Reported(Told),
    /// The server stops; the next start takes it up again.
    PutBack,
}

impl Live {
    pub(super) fn new(
        owner: Option<String>,
        sandbox: Arc<Sandbox>,
        request: Request,
        needs: Requirements,
        idempotency: Option<Idempotency>,
        created_at: DateTime<Utc>,
        attempts: u32,
    ) -> Self {
        let live = Self {
            id: request.id().to_string(),
            writes_to: workspace::written_by(&request),
            owner,
            needs,
            sandbox,
            idempotency,
            created_at,
            accepted: Instant::now(),
            origin: Origin::current(),
            stages: StageStarts::default(),
            cancel: CancelToken::new(),
            cancelled_by_client: AtomicBool::new(false),
            request: Mutex::new(Some(request)),
            started_at: Mutex::new(None),
            journal: Mutex::new(Journal::after(attempts)),
            unstored: Mutex::new(None),
            stored: SetOnce::new(),
            begin_stored: SetOnce::new(),
            end_stored: SetOnce::new(),
            news: watch::Sender::new(()),
            outcome: watch::Sender::new(None),
        };
        lock(&live.journal).add(EventKind::Queued);
        live
    }

    /// Leaves it to others to store this.
    pub(super) fn store_later(&self, new: NewExecution) {
        *lock(&self.unstored) = Some(new);
    }

    /// Bytes of the request that stay in memory while it waits: its contents, and its text if that is not stored.
    pub(super) fn waiting_bytes(&self) -> u64 {
        let contents = lock(&self.request).as_ref().map_or(0, Request::content_bytes);
        let unstored = lock(&self.unstored).as_ref().map_or(0, |new| new.request.len() as u64);
        contents.saturating_add(unstored)
    }

    /// Whether it is left to others to store it.
    pub(super) fn is_unstored(&self) -> bool {
        lock(&self.unstored).is_some()
    }

    /// Whether somebody has begun to carry it out.
    pub(super) fn is_begun(&self) -> bool {
        lock(&self.started_at).is_some()
    }

    /// What is still to be stored. Whoever takes it stores it, and says so.
    pub(super) fn take_unstored(&self) -> Option<NewExecution> {
        let new = lock(&self.unstored).take()?;
        Some(NewExecution { started_at: *lock(&self.started_at), ..new })
    }

    /// The store has it.
    pub(super) fn set_stored(&self) {
        // It may have been said before.
        let _ = self.stored.set(());
    }

    /// The store has it, and that it was begun.
    pub(super) fn set_begin_stored(&self) {
        self.set_stored();
        let _ = self.begin_stored.set(());
    }

    /// Waits until the store has that it was begun.
    pub(super) async fn begin_stored(&self) {
        self.begin_stored.wait().await;
    }

    /// Waits on this thread until the store has that it was begun, if anybody could hear of it.
    pub(super) fn wait_for_begin(&self, runtime: &Handle) {
        if !self.begin_stored.initialized() && !self.is_unstored() {
            tokio::task::block_in_place(|| runtime.block_on(self.begin_stored()));
        }
    }

    /// Whether it was tried to store it as begun.
    pub(super) fn is_begin_stored(&self) -> bool {
        self.begin_stored.initialized()
    }

    /// Its end was stored, or could not be. Only the first attempt counts: that is what clients hear of.
    pub(super) fn set_end_stored(&self, is_stored: bool) {
        let _ = self.end_stored.set(is_stored);
    }

    /// Waits until its end was stored, or could not be.
    pub(super) async fn end_stored(&self) -> bool {
        *self.end_stored.wait().await
    }

    /// Waits until the store has it.
    pub(super) async fn stored(&self) {
        self.stored.wait().await;
    }

    /// Takes the request out, to carry it out.
    pub(super) fn begin(&self, at: DateTime<Utc>) -> Option<Request> {
        *lock(&self.started_at) = Some(at);
        lock(&self.request).take()
    }

    /// Takes the request out, to end it without carrying it out.
    pub(super) fn begin_never(&self) -> Option<Request> {
        lock(&self.request).take()
    }

    /// Asks for the end in the client's name.
    pub(super) fn cancel_for_client(&self) {
        self.cancelled_by_client.store(true, Ordering::SeqCst);
        self.cancel.cancel();
    }

    pub(super) fn is_cancelled_by_client(&self) -> bool {
        self.cancelled_by_client.load(Ordering::SeqCst)
    }

    /// Writes down what the library tells.
    pub(super) fn tell(&self, event: &Event) {
        self.stages.hear(&event.kind);
        let mut journal = lock(&self.journal);
        match &event.kind {
            // The one was told at acceptance, when it happened; the other is told when it is stored.
            EventKind::Queued | EventKind::Report(_) => return,
            EventKind::Output(stream, bytes) => journal.write(*stream, bytes),
            EventKind::Usage(_) if journal.is_long() => return,
            other => journal.add(other.clone()),
        }
        drop(journal);
        self.news.send_replace(());
    }

    /// All events, the last of which says that there is a report. To be stored with it.
    pub(super) fn close_journal(&self) -> Vec<StoredEvent> {
        lock(&self.journal).close()
    }

    /// Tells everybody who waits.
    pub(super) fn end(&self, outcome: Outcome) {
        if matches!(outcome, Outcome::PutBack) {
            *lock(&self.started_at) = None;
        }
        self.outcome.send_replace(Some(outcome));
        self.news.send_replace(());
    }

    /// Events after this one, as far as there are any now.
    pub(super) fn read(&self, after: u64) -> Reading {
        lock(&self.journal).read(after)
    }

    /// Wakes at every event from now on.
    pub(super) fn news(&self) -> watch::Receiver<()> {
        self.news.subscribe()
    }

    /// How it ended, if it did.
    pub(super) fn outcome(&self) -> Option<Outcome> {
        self.outcome.borrow().clone()
    }

    /// Waits until it is out of our hands.
    pub(super) async fn ended(&self) {
        // The sender is ours, so waiting cannot fail before there is an outcome.
        let _ = self.outcome.subscribe().wait_for(Option::is_some).await;
    }

    /// When it was accepted, and how long that is ago.
    pub(super) fn acceptance(&self) -> Acceptance {
        Acceptance { at: self.created_at, waited: self.accepted.elapsed() }
    }

    /// How far it is, and since when it runs.
    pub(super) fn progress(&self) -> (Status, Option<DateTime<Utc>>) {
        let started_at = *lock(&self.started_at);
        (if started_at.is_some() { Status::Running } else { Status::Queued }, started_at)
    }
}

impl fmt::Debug for Live {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Live").field("id", &self.id).finish_non_exhaustive()
    }
}

/// Nothing that is locked here is left half changed by a panic.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
