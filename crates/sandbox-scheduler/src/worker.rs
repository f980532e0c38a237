//! Runs the executions whose turn it is, and stores their results.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use sandbox::{Event, EventKind, ExecutionId, Report, Request, Status, with_causes};
use sandbox_store::{FinishedExecution, Lease, NewExecution, QueueError, StoreFuture};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio::time::MissedTickBehavior;

use crate::budget::Permit;
use crate::context::{Context, StoredOnDrop, audit_of_execution};
use crate::execution::{Execution, Outcome};
use crate::lock::lock;
use crate::report::{self, StoredReport};

/// The delays before further attempts to store a result.
const STORE_RETRY_DELAYS: [Duration; 4] = [
    Duration::from_millis(50),
    Duration::from_millis(500),
    Duration::from_secs(2),
    Duration::from_secs(5),
];

/// With more executions than this in flight, a result that cannot be stored and that its client has is dropped: while
/// the store fails, reports must not fill the memory.
const MAX_UNSTORED: usize = 64;

/// An execution that runs for this long is stored before its end, so that it can be listed.
const STORE_RUNNING_AFTER: Duration = Duration::from_millis(100);

/// How often a task checks whether an execution on another thread has ended: the first interval and the maximum.
const MIN_POLL_INTERVAL: Duration = Duration::from_millis(5);
const MAX_POLL_INTERVAL: Duration = Duration::from_millis(20);

/// How often a lease is extended before it would expire.
const LEASE_EXTENSIONS: u32 = 3;

/// The result of an execution on this thread, or the panic that ended it.
type RunResult = std::thread::Result<(Option<Finished>, Option<Permit>)>;

/// Counts an execution as in flight until it is dropped.
struct InFlight(Arc<Context>);

/// A finished execution whose result is being stored.
struct Finished {
    report: Report,
    result: PendingResult,
}

/// A result that is being stored.
struct PendingResult {
    report: StoredReport,
    /// The record to insert together with the result, if the execution was not stored before.
    new: Option<Arc<NewExecution>>,
    stored: StoreFuture<'static, bool>,
}

/// Starts executions as they fit, until the queue is closed.
pub(crate) async fn dispatch(context: Arc<Context>) {
    let capacity = || context.budget.capacity();
    while let Some(lease) = context.queue.claim(&context.worker, &capacity).await {
        let job = lease.job();
        let Some(permit) = context.budget.try_acquire(job.owner.as_deref(), job.memory) else {
            // A request that bypassed the queue has just taken the capacity.
            log_lost(lease.release().await);
            continue;
        };
        context.registry.set_started(&job.id);
        if let Some(execution) = context.registry.get(&job.id) {
            tokio::spawn(run(InFlight::new(&context), execution, permit, lease));
        } else {
            context.admissions.admit(&job.id, permit);
            log_lost(lease.finish().await);
        }
    }
}

/// Extends a lease again and again. Returns when it is lost.
async fn lease_lost(lease: &Lease) {
    let Some(duration) = lease.duration() else {
        return std::future::pending().await;
    };
    let mut extended = Instant::now();
    loop {
        tokio::time::sleep(duration / LEASE_EXTENSIONS).await;
        let attempted = Instant::now();
        match lease.extend().await {
            Ok(()) => extended = attempted,
            Err(QueueError::LeaseLost) => return,
            // It is valid until it expires, whatever the queue says.
            Err(_) if extended.elapsed() >= duration => return,
            Err(error) => {
                tracing::warn!(error = with_causes(&error), "failed to extend a lease");
            }
        }
    }
}

/// The end of a lease fails only if the lease was lost: then another worker has the job.
fn log_lost(ended: Result<(), QueueError>) {
    if let Err(error) = ended {
        tracing::error!(error = with_causes(&error), "failed to end a lease");
    }
}

/// Runs an execution on a thread of its own.
async fn run(in_flight: InFlight, execution: Arc<Execution>, permit: Permit, lease: Lease) {
    let context = &in_flight.0;
    let Some(request) = start(context, &execution) else {
        log_lost(lease.finish().await);
        return;
    };
    let mut thread = spawn_blocking(context, &execution, request, permit);
    let ended = tokio::select! {
        ended = &mut thread => ended,
        () = lease_lost(&lease) => {
            tracing::error!(id = execution.id, "the lease is lost; another worker runs the execution");
            execution.lose_lease();
            thread.await
        }
    };
    let is_finished = match ended {
        Ok((finished, permit)) => settle(in_flight, execution, finished, permit).await,
        Err(_) => after_panic(in_flight, execution).await,
    };
    log_lost(if is_finished { lease.finish().await } else { lease.release().await });
}

/// Runs an execution at once, on a thread of its own.
pub(crate) fn spawn(context: &Arc<Context>, execution: &Arc<Execution>, permit: Permit) {
    let in_flight = InFlight::new(context);
    context.registry.set_started(&execution.id);
    let Some(request) = start(context, execution) else {
        return;
    };
    let thread = spawn_blocking(context, execution, request, permit);
    let execution = Arc::clone(execution);
    tokio::spawn(async move {
        match thread.await {
            Ok((finished, permit)) => settle(in_flight, execution, finished, permit).await,
            Err(_) => after_panic(in_flight, execution).await,
        }
    });
}

fn spawn_blocking(
    context: &Arc<Context>,
    execution: &Arc<Execution>,
    request: Request,
    permit: Permit,
) -> JoinHandle<(Option<Finished>, Option<Permit>)> {
    let (context, execution) = (Arc::clone(context), Arc::clone(execution));
    let runtime = Handle::current();
    tokio::task::spawn_blocking(move || {
        let finished = execute(&context, &execution, request, &runtime);
        // The sandbox is gone only now.
        (finished, held_back(&context, permit))
    })
}

/// Runs an execution at once on this thread, without a switch to another thread and back. Other tasks of this thread
/// continue elsewhere.
pub(crate) fn run_in_place(context: &Arc<Context>, execution: &Arc<Execution>, permit: Permit) {
    let in_flight = InFlight::new(context);
    context.registry.set_started(&execution.id);
    let Some(request) = start(context, execution) else {
        return;
    };
    let result = Arc::new(OnceLock::new());
    tokio::spawn(settle_in_background(in_flight, Arc::clone(execution), Arc::clone(&result)));
    let runtime = Handle::current();
    // The library calls `block_in_place` around its long waits.
    let finished =
        catch_unwind(AssertUnwindSafe(|| execute(context, execution, request, &runtime)));
    let finished = finished.map(|finished| (finished, held_back(context, permit)));
    let _ = result.set(Mutex::new(Some(finished)));
}

/// Blocks this thread and lets its other tasks continue elsewhere. For
/// [`SandboxBuilder::blocking_with`](sandbox::SandboxBuilder::blocking_with): the library calls it once the program
/// has started, so that the cost of moving the tasks is paid while the program runs.
pub fn block_in_place(wait: &mut dyn FnMut()) {
    tokio::task::block_in_place(wait);
}

/// Settles an execution that runs on another thread. It polls: a wake-up would take a CPU from the response that is
/// being sent.
async fn settle_in_background(
    in_flight: InFlight,
    execution: Arc<Execution>,
    result: Arc<OnceLock<Mutex<Option<RunResult>>>>,
) {
    let mut interval = MIN_POLL_INTERVAL;
    let result = loop {
        tokio::time::sleep(interval).await;
        if let Some(result) = result.get() {
            break lock(result).take();
        }
        interval = (interval * 2).min(MAX_POLL_INTERVAL);
    };
    match result {
        Some(Ok((finished, permit))) => settle(in_flight, execution, finished, permit).await,
        Some(Err(_)) | None => after_panic(in_flight, execution).await,
    };
}

/// Releases the permit of an execution whose sandbox is gone, or returns it if the store is backlogged: then it is
/// released when the result is written, because results that wait to be written are in memory.
fn held_back(context: &Context, permit: Permit) -> Option<Permit> {
    context.store.is_backlogged().then_some(permit)
}

fn start(context: &Arc<Context>, execution: &Arc<Execution>) -> Option<Request> {
    let started_at = Utc::now();
    let request = execution.start(started_at)?;
    store_start(context, execution, started_at);
    Some(request)
}

/// Has the store count the attempt while the sandbox is prepared.
///
/// The attempt must be counted before the program can have an effect that a client sees, so that an execution that
/// crashes the server is not retried for ever. An execution that is not stored would not be retried, so it is stored
/// together with its result, unless it takes longer.
fn store_start(context: &Arc<Context>, execution: &Arc<Execution>, started_at: DateTime<Utc>) {
    if execution.is_unstored() {
        return;
    }
    let context = Arc::clone(context);
    let guard = StoredOnDrop { execution: Arc::clone(execution), is_started: true };
    tokio::spawn(async move {
        let id = &guard.execution.id;
        if let Err(error) = context.store.mark_running(id, started_at).await {
            tracing::error!(id, error = with_causes(&error), "failed to store the start");
        }
    });
}

/// Stores, for as long as the server runs, the executions that were started without being stored and take long.
pub(crate) async fn store_long_running(context: Arc<Context>) {
    let mut ticks = tokio::time::interval(STORE_RUNNING_AFTER);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let is_long = |execution: &Arc<Execution>| {
            // Once: after a failure the execution is stored with its result.
            execution.is_unstored()
                && !execution.is_start_stored()
                && execution.is_started()
                && execution.accepted.elapsed() >= STORE_RUNNING_AFTER
        };
        for execution in context.registry.all().into_iter().filter(is_long) {
            if let Err(error) = context.store_unstored(&execution).await {
                let id = &execution.id;
                tracing::error!(id, error = with_causes(&error), "failed to store the execution");
            }
            execution.set_start_stored();
        }
    }
}

/// Executes a request. The end is announced as soon as it is known: nobody waits for what the library does after that,
/// such as filling its compile cache. Returns none if the execution is to run again.
fn execute(
    context: &Context,
    execution: &Execution,
    request: Request,
    runtime: &Handle,
) -> Option<Finished> {
    let id = request.id();
    let request = request.with_acceptance(execution.acceptance());
    let mut pending = None;
    let mut listener = |event: &Event| {
        if matches!(event.kind, EventKind::Output(..) | EventKind::Report(_)) {
            execution.block_until_start_stored(runtime);
        }
        match &event.kind {
            // The result of the other attempt counts.
            EventKind::Report(_) if execution.is_lease_lost() => abandon(context, execution),
            EventKind::Report(report) if was_stopped(execution, report) => {
                requeue(context, execution, runtime);
            }
            EventKind::Report(report) => pending = Some(finish(context, execution, report)),
            _ => execution.record(event),
        }
    };
    match execution.sandbox.execute_with(request, &mut listener, &execution.cancel) {
        Ok(report) => pending.map(|result| Finished { report, result }),
        Err(_) if execution.is_lease_lost() => {
            abandon(context, execution);
            None
        }
        Err(error) => {
            execution.block_until_start_stored(runtime);
            let report = not_started(execution, id, Status::Error, &with_causes(&error));
            let result = finish(context, execution, &report);
            Some(Finished { report, result })
        }
    }
}

/// Whether it was cancelled because the server stops.
fn was_stopped(execution: &Execution, report: &Report) -> bool {
    report.status == Status::Cancelled && !execution.is_cancelled_by_client()
}

/// Issues the write of the result, then announces the end.
///
/// Every later reader of the store sees an issued write, so clients need not wait for the disk. If the server is killed
/// before the write completes, the execution counts as interrupted.
fn finish(context: &Context, execution: &Execution, report: &Report) -> PendingResult {
    let report = StoredReport::from(report);
    let new = execution.take_unstored().map(Arc::new);
    let stored = store_result(context, execution, &report, new.clone());
    // First the quota: a client that knows of the end can submit another execution.
    context.registry.release_quota(execution);
    execution.end(Outcome::Finished(report.clone()));
    PendingResult { report, new, stored }
}

fn store_result(
    context: &Context,
    execution: &Execution,
    report: &StoredReport,
    new: Option<Arc<NewExecution>>,
) -> StoreFuture<'static, bool> {
    let language = &execution.requirements.language;
    let finished = FinishedExecution {
        id: execution.id.clone(),
        status: report.status,
        report: Arc::clone(&report.json),
        events: execution.close_journal(),
        at: Utc::now(),
        audit: audit_of_execution(execution.owner.clone(), &execution.id, language, report.status),
    };
    match new {
        Some(new) => context.store.insert_finished(new, finished),
        None => context.store.finish(finished),
    }
}

/// Waits until the result is stored, and removes the execution from the registry. Returns false if it is to run again.
async fn settle(
    in_flight: InFlight,
    execution: Arc<Execution>,
    finished: Option<Finished>,
    permit: Option<Permit>,
) -> bool {
    let context = &in_flight.0;
    let Some(Finished { report, result }) = finished else {
        return false;
    };
    execution.observe_end(&report);
    drop(report);
    store_until_stored(context, &execution, result, permit).await;
    execution.set_stored();
    context.registry.remove(&execution.id);
    true
}

/// Waits until a result is stored, with retries. The result of an execution that the store has is kept until it is
/// stored or the server stops, because only this process has it. A result that its client has is given up after some
/// attempts, or at once if many wait.
async fn store_until_stored(
    context: &Context,
    execution: &Execution,
    result: PendingResult,
    permit: Option<Permit>,
) {
    let PendingResult { report, mut new, mut stored } = result;
    let mut permit = permit;
    let mut delays = STORE_RETRY_DELAYS.into_iter();
    loop {
        let outcome = stored.await;
        drop(permit.take());
        let error = match outcome {
            Ok(true) => break,
            Ok(false) => match context.store.summary(&execution.id).await {
                Ok(Some(_)) => break,
                Ok(None) => "the execution is not in the store".to_owned(),
                Err(error) => with_causes(&error),
            },
            Err(error) => with_causes(&error),
        };
        execution.set_result_stored(false);
        tracing::error!(id = execution.id, error, "failed to save the execution result");
        // Storing it at its acceptance or start may have failed.
        new = new.or_else(|| execution.take_unstored().map(Arc::new));
        let is_stored_before = new.is_none();
        let delay = match delays.next() {
            Some(delay) if is_stored_before || *context.in_flight.borrow() <= MAX_UNSTORED => delay,
            None if is_stored_before && !context.registry.is_closed() => {
                STORE_RETRY_DELAYS[STORE_RETRY_DELAYS.len() - 1]
            }
            // One that is in the store is unfinished there until the next start.
            _ => return,
        };
        tokio::time::sleep(delay).await;
        stored = store_result(context, execution, &report, new.clone());
    }
    execution.set_result_stored(true);
}

/// The thread panicked, before or after the end was announced. The panic itself was logged.
async fn after_panic(in_flight: InFlight, execution: Arc<Execution>) -> bool {
    let context = &in_flight.0;
    let finished = if execution.outcome().is_none()
        && let Ok(id) = execution.id.parse()
    {
        execution.start_stored().await;
        let report = not_started(&execution, id, Status::Error, "internal error");
        let result = finish(context, &execution, &report);
        Some(Finished { report, result })
    } else {
        context.registry.remove(&execution.id);
        None
    };
    settle(in_flight, execution, finished, None).await
}

/// Ends an execution that was not started.
pub(crate) async fn end_without_running(
    context: &Arc<Context>,
    execution: &Arc<Execution>,
    status: Status,
    reason: &str,
) {
    let in_flight = InFlight::new(context);
    let Some(request) = execution.take_request() else {
        return;
    };
    let report = not_started(execution, request.id(), status, reason);
    let result = finish(context, execution, &report);
    settle(in_flight, Arc::clone(execution), Some(Finished { report, result }), None).await;
}

/// The server stops: leaves the execution to the next start.
fn requeue(context: &Context, execution: &Execution, runtime: &Handle) {
    let requeued = async {
        context.store_unstored(execution).await?;
        context.store.requeue(&execution.id).await
    };
    let requeued = tokio::task::block_in_place(|| runtime.block_on(requeued));
    if let Err(error) = requeued {
        let id = &execution.id;
        tracing::error!(id, error = with_causes(&error), "failed to requeue the execution");
    }
    abandon(context, execution);
}

/// Forgets an execution that this process does not finish.
fn abandon(context: &Context, execution: &Execution) {
    execution.set_stored();
    execution.end(Outcome::Requeued);
    context.registry.remove(&execution.id);
}

/// The report of an execution without a sandbox.
fn not_started(execution: &Execution, id: ExecutionId, status: Status, reason: &str) -> Report {
    let requirements = &execution.requirements;
    let report = report::not_started(
        id,
        &requirements.language,
        &requirements.version,
        execution.acceptance(),
        status,
        reason,
    );
    Report { isolation: execution.sandbox.isolation(), ..report }
}

impl InFlight {
    fn new(context: &Arc<Context>) -> Self {
        context.in_flight.send_modify(|count| *count += 1);
        Self(Arc::clone(context))
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.in_flight.send_modify(|count| *count -= 1);
    }
}
