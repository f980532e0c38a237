//! Carrying out what waits.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use sandbox::{Event, EventKind, ExecutionId, Report, Request, Status, with_causes};
use sandbox_store::{Ending, Job, NewExecution};
use serde_json::Value;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::budget::Place;
use super::live::{Live, Outcome};
use super::shared::{Shared, audit_of_end};
use super::{observe, report};

/// How long to wait before each further attempt to store an end.
const STORE_AGAIN: [Duration; 4] = [
    Duration::from_millis(50),
    Duration::from_millis(500),
    Duration::from_secs(2),
    Duration::from_secs(5),
];

/// How an execution ended.
struct End {
    status: Status,
    report: Value,
}

/// Counts an execution as in hand until it is dropped.
struct InHand(Arc<Shared>);

/// Begins executions as they fit, until the queue is closed.
pub(super) async fn dispatch(shared: Arc<Shared>) {
    let fits = |job: &Job| shared.budget.fits(job.memory);
    while let Some(job) = shared.queue.take(&fits).await {
        shared.hub.begun(&job.id);
        let Some(live) = shared.hub.get(&job.id) else {
            shared.turns.come(&job.id, || shared.budget.take(job.memory));
            continue;
        };
        let place = shared.budget.take(job.memory);
        let in_hand = InHand::new(&shared);
        tokio::spawn(carry_out(in_hand, live, place));
    }
}

async fn carry_out(in_hand: InHand, live: Arc<Live>, place: Place) {
    let shared = &in_hand.0;
    let started_at = Utc::now();
    let Some(request) = live.begin(started_at) else {
        return;
    };
    let end = run(shared, &live, request, started_at, place).await;
    if end.status == Status::Cancelled && !live.is_cancelled_by_client() {
        put_back(shared, &live).await;
    } else {
        finish(shared, &live, end).await;
    }
    shared.queue.done(&live.id).await;
}

/// Runs it on a thread of its own.
async fn run(
    shared: &Arc<Shared>,
    live: &Arc<Live>,
    request: Request,
    started_at: DateTime<Utc>,
    place: Place,
) -> End {
    store_begin(shared, live, started_at);
    let (tell_end, end) = oneshot::channel();
    let id = request.id();
    let thread = {
        let (shared, live) = (Arc::clone(shared), Arc::clone(live));
        let runtime = Handle::current();
        tokio::task::spawn_blocking(move || {
            execute(&shared, &live, request, &runtime, tell_end);
            // Only now is the sandbox gone.
            drop(place);
        })
    };
    if let Ok(end) = end.await {
        return end;
    }
    // The thread is gone without a word, by a panic that was printed when it happened.
    let _ = thread.await;
    End::without_running(shared, live, id, Status::Error, "a failure of the server")
}

/// Has the store write that it was begun, and does not wait for that: the sandbox is prepared meanwhile.
///
/// One that ends the server must be counted, or it would be tried for ever. So nobody sees anything of
/// what a program does before its attempt is stored.
fn store_begin(shared: &Arc<Shared>, live: &Arc<Live>, started_at: DateTime<Utc>) {
    let (shared, live) = (Arc::clone(shared), Arc::clone(live));
    tokio::spawn(async move {
        let begun = match live.take_unstored() {
            Some(new) => {
                let new = NewExecution { begun_at: Some(started_at), ..new };
                shared.store.insert(new).await.map(drop)
            }
            None => shared.store.begin(&live.id, started_at).await,
        };
        if let Err(error) = begun {
            tracing::error!(id = live.id, error = with_causes(&error), "not stored as begun");
        }
        live.set_begin_stored();
    });
}

/// Executes and tells the end as soon as it is known: what the library does after that, such as
/// remembering what was compiled, nobody needs to wait for.
fn execute(
    shared: &Shared,
    live: &Live,
    request: Request,
    runtime: &Handle,
    tell_end: oneshot::Sender<End>,
) {
    let id = request.id();
    let waited = live.accepted.elapsed();
    let mut tell_end = Some(tell_end);
    let mut listener = |event: &Event| {
        if matches!(event.kind, EventKind::Output(..) | EventKind::Report(_)) {
            live.wait_for_begin(runtime);
        }
        if let EventKind::Report(ended) = &event.kind
            && let Some(tell_end) = tell_end.take()
        {
            let _ = tell_end.send(End::reported(shared, live, ended, waited));
        } else {
            live.tell(event);
        }
    };
    let result = shared.sandbox.execute_with(request, &mut listener, &live.cancel);
    if let (Err(error), Some(tell_end)) = (result, tell_end) {
        let reason = with_causes(&error);
        let _ = tell_end.send(End::without_running(shared, live, id, Status::Error, &reason));
    }
}

/// Stores the end, then tells it.
async fn finish(shared: &Shared, live: &Live, end: End) {
    let End { status, report } = end;
    if let Some(new) = live.take_unstored() {
        // Nobody needs to wait: the store writes in the order of the calls.
        drop(shared.store.insert(new));
    } else {
        live.stored().await;
    }
    let mut delays = STORE_AGAIN.iter();
    loop {
        let ending = Ending {
            id: live.id.clone(),
            status,
            report: report.clone(),
            events: live.close_journal(),
            at: Utc::now(),
            audit: audit_of_end(live.owner.clone(), &live.id, &live.needs.language, status),
        };
        let Err(error) = shared.store.finish(ending).await else {
            break;
        };
        tracing::error!(id = live.id, error = with_causes(&error), "the end is not stored");
        match delays.next() {
            Some(delay) => tokio::time::sleep(*delay).await,
            // Whoever waits is told; for the store, it is unfinished until the next start.
            None => break,
        }
    }
    live.set_stored();
    // First this: whoever is told of the end has room for another one.
    shared.hub.remove(&live.id);
    live.end(Outcome::Reported(Arc::new(report)));
}

/// Ends an execution that was not begun.
pub(super) async fn end_without_running(
    shared: &Arc<Shared>,
    live: &Live,
    status: Status,
    reason: &str,
) {
    let _in_hand = InHand::new(shared);
    let Some(request) = live.begin_never() else {
        return;
    };
    let end = End::without_running(shared, live, request.id(), status, reason);
    finish(shared, live, end).await;
}

/// The server stops: the next start runs it again.
async fn put_back(shared: &Shared, live: &Live) {
    if let Err(error) = shared.store.put_back(&live.id).await {
        tracing::error!(id = live.id, error = with_causes(&error), "not put back");
    }
    live.set_stored();
    live.end(Outcome::PutBack);
    shared.hub.remove(&live.id);
}

impl End {
    fn reported(shared: &Shared, live: &Live, ended: &Report, waited: Duration) -> Self {
        if ended.status != Status::Cancelled || live.is_cancelled_by_client() {
            observe::ended(shared, live, ended, waited);
        }
        let report = report::after_waiting(ended, live, waited);
        Self { status: ended.status, report }
    }

    fn without_running(
        shared: &Shared,
        live: &Live,
        id: ExecutionId,
        status: Status,
        reason: &str,
    ) -> Self {
        let needs = &live.needs;
        let ended = report::not_carried_out(
            id,
            &needs.language,
            &needs.version,
            live.created_at,
            status,
            reason,
        );
        Self::reported(shared, live, &ended, live.accepted.elapsed())
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
