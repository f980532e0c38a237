//! Carrying out what waits.

use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use chrono::{DateTime, Utc};
use sandbox::{Event, EventKind, ExecutionId, Report, Request, Status, with_causes};
use sandbox_store::{FinishedExecution, Fit, Job, NewExecution, StoreError, StoreFuture};
use tokio::runtime::Handle;
use tokio::time::MissedTickBehavior;

use super::budget::Permit;
use super::live::{Live, Outcome, lock};
use super::report::Told;
use super::shared::{Shared, audit_of_end};
use super::{observe, report};

/// How long to wait before each further attempt to store an end.
const STORE_AGAIN: [Duration; 4] = [
    Duration::from_millis(50),
    Duration::from_millis(500),
    Duration::from_secs(2),
    Duration::from_secs(5),
];

/// With more executions than this in hand, one that cannot be stored and whose client has its report is given up:
/// while nothing can be stored, reports must not fill the memory.
const MAX_UNSTORED: usize = 64;

/// After so long an execution is stored although nobody was told its id, so that it can be seen.
const LONG_ENOUGH: Duration = Duration::from_millis(100);

/// How soon it is looked whether an execution has ended, and how often at last.
const FIRST_LOOK: Duration = Duration::from_millis(5);
const LAST_LOOK: Duration = Duration::from_millis(20);

/// What came of an execution on this thread, or the panic that ended it.
type Ran = std::thread::Result<(Option<Ended>, Option<Permit>)>;

/// Counts an execution as in hand until it is dropped.
struct InHand(Arc<Shared>);

/// Says, when it is dropped, that the store has an execution. Also if storing failed, or if the task that should have
/// is dropped because the server has come to its end: nobody waits for ever.
struct SaysStored<L: Deref<Target = Live>> {
    live: L,
    /// Whether the store has that it was begun, too.
    is_begun: bool,
}

/// An end that was told, and the store's answer to it.
struct Ended {
    report: Report,
    end: End,
}

/// The same without the report.
struct End {
    told: Told,
    /// What is stored together with the end, if the execution was not stored before.
    new: Option<Arc<NewExecution>>,
    stored: StoreFuture<'static, bool>,
}

/// Begins executions as they fit, until the queue is closed.
pub(super) async fn dispatch(shared: Arc<Shared>) {
    // The permit is acquired with the answer: requests that do not wait acquire theirs at the same time.
    let acquired = Mutex::new(None);
    let fit = |job: &Job| match shared.budget.try_acquire(job.owner.as_deref(), job.memory) {
        Ok(permit) => {
            *lock(&acquired) = Some(permit);
            Fit::Now
        }
        Err(fit) => fit,
    };
    while let Some(job) = shared.queue.claim(&fit).await {
        let Some(permit) = lock(&acquired).take() else {
            continue;
        };
        shared.hub.begun(&job.id);
        match shared.hub.get(&job.id) {
            Some(live) => drop(tokio::spawn(carry_out(InHand::new(&shared), live, permit))),
            None => shared.waiters.admit(&job.id, permit),
        }
    }
}

/// Carries out an execution whose turn came, on a thread of its own.
async fn carry_out(in_hand: InHand, live: Arc<Live>, permit: Permit) {
    let shared = &in_hand.0;
    let Some(request) = begin(shared, &live) else {
        return;
    };
    let thread = {
        let (shared, live) = (Arc::clone(shared), Arc::clone(&live));
        let runtime = Handle::current();
        tokio::task::spawn_blocking(move || {
            let ended = execute(&shared, &live, request, &runtime);
            // Only now is the sandbox gone.
            (ended, kept_back(&shared, permit))
        })
    };
    match thread.await {
        Ok((ended, permit)) => settle(in_hand, live, ended, permit).await,
        Err(_) => after_panic(in_hand, live).await,
    }
}

/// Carries out an execution whose turn it is at once, on this thread: whoever waits for it is spared the
/// way to another one and back. Other tasks of this thread go on elsewhere meanwhile.
pub(super) fn carry_out_here(shared: &Arc<Shared>, live: &Arc<Live>, permit: Permit) {
    let in_hand = InHand::new(shared);
    shared.hub.begun(&live.id);
    let Some(request) = begin(shared, live) else {
        return;
    };
    let ran = Arc::new(OnceLock::new());
    tokio::spawn(settle_later(in_hand, Arc::clone(live), Arc::clone(&ran)));
    let runtime = Handle::current();
    // The library has what takes long done by `wait_in_place`.
    let outcome = catch_unwind(AssertUnwindSafe(|| execute(shared, live, request, &runtime)));
    let outcome = outcome.map(|ended| (ended, kept_back(shared, permit)));
    let _ = ran.set(Mutex::new(Some(outcome)));
}

/// Waits on this thread, and lets its other tasks go on elsewhere. That costs something, so the library does it
/// when the program has been started: both go on at the same time.
pub(crate) fn wait_in_place(wait: &mut dyn FnMut()) {
    tokio::task::block_in_place(wait);
}

/// What is left to do after an execution, when it has ended. Nobody wakes this up: whoever did would take a
/// processor from the answer that is on its way.
async fn settle_later(in_hand: InHand, live: Arc<Live>, ran: Arc<OnceLock<Mutex<Option<Ran>>>>) {
    let mut pause = FIRST_LOOK;
    let outcome = loop {
        tokio::time::sleep(pause).await;
        if let Some(outcome) = ran.get() {
            break lock(outcome).take();
        }
        pause = (pause * 2).min(LAST_LOOK);
    };
    match outcome {
        Some(Ok((ended, permit))) => settle(in_hand, live, ended, permit).await,
        Some(Err(_)) | None => after_panic(in_hand, live).await,
    }
}

/// The permit of an execution is released when its sandbox is gone; only when its end is written, if programs print
/// faster than the disk writes: what waits to be written is in memory.
fn kept_back(shared: &Shared, permit: Permit) -> Option<Permit> {
    shared.store.is_backlogged().then_some(permit)
}

fn begin(shared: &Arc<Shared>, live: &Arc<Live>) -> Option<Request> {
    let started_at = Utc::now();
    let request = live.begin(started_at)?;
    store_begin(shared, live, started_at);
    Some(request)
}

/// Has the store write that it was begun, and does not wait for that: the sandbox is prepared meanwhile.
///
/// One that ends the server must be counted, or it would be tried for ever. So nobody sees anything of
/// what a program does before its attempt is stored. One that nobody was told the id of needs no count:
/// it would not be tried again. It is stored with its end, in one step, unless it takes longer.
fn store_begin(shared: &Arc<Shared>, live: &Arc<Live>, started_at: DateTime<Utc>) {
    if live.is_unstored() {
        return;
    }
    let shared = Arc::clone(shared);
    // Also if somebody else stored it.
    let said = SaysStored { live: Arc::clone(live), is_begun: true };
    tokio::spawn(async move {
        let id = &said.live.id;
        if let Err(error) = shared.store.mark_running(id, started_at).await {
            tracing::error!(id, error = with_causes(&error), "not stored as begun");
        }
    });
}

/// Stores, for as long as the server runs, what was begun without being stored and takes long.
pub(super) async fn store_what_takes_long(shared: Arc<Shared>) {
    let mut looks = tokio::time::interval(LONG_ENOUGH);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        looks.tick().await;
        let is_long = |live: &Arc<Live>| {
            // Once: what could not be stored then is stored with its end.
            live.is_unstored()
                && !live.is_begin_stored()
                && live.is_begun()
                && live.accepted.elapsed() >= LONG_ENOUGH
        };
        for live in shared.hub.all().into_iter().filter(is_long) {
            if let Err(error) = store_unstored(&shared, &live).await {
                tracing::error!(id = live.id, error = with_causes(&error), "not stored");
            }
            live.set_begin_stored();
        }
    }
}

/// Stores an execution that was not stored when it was accepted, if nobody else does.
pub(super) async fn store_unstored(shared: &Shared, live: &Live) -> Result<(), StoreError> {
    let Some(new) = live.take_unstored() else {
        return Ok(());
    };
    let _said = SaysStored { live, is_begun: new.started_at.is_some() };
    let stored = shared.store.insert(new.clone()).await;
    if stored.is_err() {
        live.store_later(new);
    }
    stored.map(drop)
}

/// Executes and tells the end as soon as it is known: what the library does after that, such as
/// remembering what was compiled, nobody needs to wait for. None if it is to be run again.
fn execute(shared: &Shared, live: &Live, request: Request, runtime: &Handle) -> Option<Ended> {
    let id = request.id();
    let request = request.with_acceptance(live.acceptance());
    let mut told = None;
    let mut listener = |event: &Event| {
        if matches!(event.kind, EventKind::Output(..) | EventKind::Report(_)) {
            live.wait_for_begin(runtime);
        }
        match &event.kind {
            EventKind::Report(ended) if was_stopped(live, ended) => put_back(shared, live, runtime),
            EventKind::Report(ended) => told = Some(tell(shared, live, ended)),
            _ => live.tell(event),
        }
    };
    match live.sandbox.execute_with(request, &mut listener, &live.cancel) {
        Ok(report) => told.map(|end| Ended { report, end }),
        Err(error) => {
            live.wait_for_begin(runtime);
            let report = without_running(live, id, Status::Error, &with_causes(&error));
            let end = tell(shared, live, &report);
            Some(Ended { report, end })
        }
    }
}

/// Whether it was ended because the server stops.
fn was_stopped(live: &Live, ended: &Report) -> bool {
    ended.status == Status::Cancelled && !live.is_cancelled_by_client()
}

/// Tells the end, and has it stored.
///
/// It is told as soon as every later reader sees it, which is when the store was asked to write it:
/// whoever waits need not wait for the disk. If the server is killed in that moment, the execution is one
/// that was interrupted.
fn tell(shared: &Shared, live: &Live, ended: &Report) -> End {
    let told = Told::of(ended);
    let new = live.take_unstored().map(Arc::new);
    let stored = store_end(shared, live, &told, new.clone());
    // First this: whoever is told of the end has room for another one.
    shared.hub.make_room(live);
    live.end(Outcome::Reported(told.clone()));
    End { told, new, stored }
}

fn store_end(
    shared: &Shared,
    live: &Live,
    told: &Told,
    new: Option<Arc<NewExecution>>,
) -> StoreFuture<'static, bool> {
    let ending = FinishedExecution {
        id: live.id.clone(),
        status: told.status,
        report: Arc::clone(&told.json),
        events: live.close_journal(),
        at: Utc::now(),
        audit: audit_of_end(live.owner.clone(), &live.id, &live.needs.language, told.status),
    };
    match new {
        Some(new) => shared.store.insert_finished(new, ending),
        None => shared.store.finish(ending),
    }
}

/// Sees to it that an end is stored, and lets go of the execution.
async fn settle(in_hand: InHand, live: Arc<Live>, ended: Option<Ended>, permit: Option<Permit>) {
    let shared = &in_hand.0;
    if let Some(Ended { report, end }) = ended {
        observe::ended(shared, &live, &report);
        drop(report);
        store_until_stored(shared, &live, end, permit).await;
        live.set_stored();
        shared.hub.remove(&live.id);
    }
    shared.queue.release(&live.id).await;
}

/// Stores an end, again and again if need be. An execution that the store has is kept until its end is
/// stored too, or the server stops: until then only this process knows its report. One whose client has the
/// report is given up after some attempts, or at once if many wait.
async fn store_until_stored(shared: &Shared, live: &Live, end: End, permit: Option<Permit>) {
    let End { told, mut new, mut stored } = end;
    let mut permit = permit;
    let mut delays = STORE_AGAIN.into_iter();
    loop {
        let outcome = stored.await;
        drop(permit.take());
        let error = match outcome {
            Ok(true) => break,
            Ok(false) => match shared.store.summary(&live.id).await {
                Ok(Some(_)) => break,
                Ok(None) => "the store does not have the execution".to_owned(),
                Err(error) => with_causes(&error),
            },
            Err(error) => with_causes(&error),
        };
        live.set_end_stored(false);
        tracing::error!(id = live.id, error, "the end is not stored");
        // Storing it when it was accepted or begun may have failed.
        new = new.or_else(|| live.take_unstored().map(Arc::new));
        let is_promised = new.is_none();
        let delay = match delays.next() {
            Some(delay) if is_promised || *shared.in_hand.borrow() <= MAX_UNSTORED => delay,
            None if is_promised && !shared.hub.is_closed() => STORE_AGAIN[STORE_AGAIN.len() - 1],
            // For the store, a promised one is unfinished until the next start.
            _ => return,
        };
        tokio::time::sleep(delay).await;
        stored = store_end(shared, live, &told, new.clone());
    }
    live.set_end_stored(true);
}

/// The thread ended by a panic, which was printed when it happened: before the end was told, or after it.
async fn after_panic(in_hand: InHand, live: Arc<Live>) {
    let shared = &in_hand.0;
    let ended = if live.outcome().is_none()
        && let Ok(id) = live.id.parse()
    {
        live.begin_stored().await;
        let report = without_running(&live, id, Status::Error, "a failure of the server");
        let end = tell(shared, &live, &report);
        Some(Ended { report, end })
    } else {
        shared.hub.remove(&live.id);
        None
    };
    settle(in_hand, live, ended, None).await;
}

/// Ends an execution that was not begun.
pub(super) async fn end_without_running(
    shared: &Arc<Shared>,
    live: &Arc<Live>,
    status: Status,
    reason: &str,
) {
    let in_hand = InHand::new(shared);
    let Some(request) = live.begin_never() else {
        return;
    };
    let report = without_running(live, request.id(), status, reason);
    let end = tell(shared, live, &report);
    settle(in_hand, Arc::clone(live), Some(Ended { report, end }), None).await;
}

/// The server stops: the next start runs it again.
fn put_back(shared: &Shared, live: &Live, runtime: &Handle) {
    let back = async {
        store_unstored(shared, live).await?;
        shared.store.requeue(&live.id).await
    };
    let put_back = tokio::task::block_in_place(|| runtime.block_on(back));
    if let Err(error) = put_back {
        tracing::error!(id = live.id, error = with_causes(&error), "not put back");
    }
    live.set_stored();
    live.end(Outcome::PutBack);
    shared.hub.remove(&live.id);
}

/// The report of an execution that came to nothing.
fn without_running(live: &Live, id: ExecutionId, status: Status, reason: &str) -> Report {
    let needs = &live.needs;
    let report = report::not_carried_out(
        id,
        &needs.language,
        &needs.version,
        live.acceptance(),
        status,
        reason,
    );
    Report { isolation: live.sandbox.isolation(), ..report }
}

impl<L: Deref<Target = Live>> Drop for SaysStored<L> {
    fn drop(&mut self) {
        if self.is_begun {
            self.live.set_begin_stored();
        } else {
            self.live.set_stored();
        }
    }
}

impl InHand {
    fn new(shared: &Arc<Shared>) -> Self {
        shared.in_hand.send_modify(|count| *count += 1);
        Self(Arc::clone(shared))
    }
}

impl Drop for InHand {
    fn drop(&mut self) {
        self.0.in_hand.send_modify(|count| *count -= 1);
    }
}
