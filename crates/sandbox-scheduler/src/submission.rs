//! Accepts checked requests into the queue.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use chrono::Utc;
use sandbox::{ByteSize, Isolation, Request, Requirements, Sandbox};
use sandbox_store::{Idempotency, InsertOutcome, NewCallback, NewExecution};

use crate::budget::Permit;
use crate::context::Context;
use crate::error::SchedulerError;
use crate::execution::{Execution, ExecutionParts, PRIORITY};
use crate::report::StoredReport;
use crate::worker;

/// A request that was checked and can be scheduled.
#[derive(Debug)]
pub struct Submission {
    /// The sandbox that it runs in.
    pub sandbox: Arc<Sandbox>,
    /// The request.
    pub request: Request,
    /// What [`Sandbox::requirements`] returned for the request.
    pub requirements: Requirements,
    /// The request as JSON text, complete enough for a [`RequestDecoder`](crate::RequestDecoder) to read it back.
    pub stored_request: String,
    /// Client-defined labels.
    pub labels: BTreeMap<String, String>,
    /// The destination of its report, if the client asked for a callback.
    pub callback: Option<NewCallback>,
    /// The client's idempotency key, if any.
    pub idempotency: Option<Idempotency>,
    /// Whether a request like this was checked before, so that preparing this one does not take long.
    pub is_toolchain_seen: bool,
}

/// An accepted request.
#[derive(Clone, Debug)]
pub struct Ticket {
    /// The id of the execution.
    pub id: String,
    /// Whether this request created it; false if an earlier one with the same idempotency key did.
    pub is_new: bool,
    /// Its report, if it has finished already.
    pub report: Option<StoredReport>,
    /// The execution, if this request created it: a finished one that cannot be stored is found nowhere else.
    pub(crate) execution: Option<Arc<Execution>>,
}

/// What the client waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerWith {
    /// The id, which stays valid: the execution is stored before the client is told its id.
    Id,
    /// The id, and the events as they come. An execution that starts at once is stored while the program runs: its id is
    /// valid as long as the server runs, and after a crash once the execution is stored.
    Events,
    /// The report, for at most this long. Until then the client does not know the id, and the execution is stored while
    /// the program runs.
    Report(Duration),
}

pub(crate) async fn submit(
    context: &Arc<Context>,
    submission: Submission,
    owner: Option<String>,
    answer: AnswerWith,
) -> Result<Ticket, SchedulerError> {
    check_memory(context, owner.as_deref(), &submission)?;
    let Submission {
        sandbox,
        request,
        requirements,
        stored_request,
        labels,
        callback,
        idempotency,
        is_toolchain_seen,
    } = submission;
    let wall_time = requirements.wall_time;
    let created_at = Utc::now();
    let execution = Arc::new(Execution::new(ExecutionParts {
        owner: owner.clone(),
        sandbox,
        request,
        requirements,
        idempotency: idempotency.clone(),
        created_at,
        attempts: 0,
        observer: context.observer.observe(),
    }));
    let new = NewExecution {
        id: execution.id.clone(),
        owner,
        language: execution.requirements.language.clone(),
        request: stored_request,
        labels,
        priority: PRIORITY,
        created_at,
        started_at: None,
        idempotency,
        callback,
    };
    if let AnswerWith::Report(timeout) = answer
        && new.idempotency.is_none()
    {
        let is_short = is_toolchain_seen && wall_time.is_some_and(|wall_time| wall_time < timeout);
        return admit_unstored(context, &execution, new, is_short).await;
    }
    // In a task of its own: a client that disconnects must not leave an execution that is stored and in no queue.
    let context = Arc::clone(context);
    let task = tokio::spawn(async move {
        match answer {
            AnswerWith::Events => admit_at_once(&context, execution, new).await,
            _ => admit(&context, execution, new).await,
        }
    });
    task.await.unwrap_or(Err(SchedulerError::Internal))
}

/// Refuses an execution that could never start.
fn check_memory(
    context: &Context,
    owner: Option<&str>,
    submission: &Submission,
) -> Result<(), SchedulerError> {
    let needed = submission.requirements.memory;
    let max = ByteSize::bytes(context.budget.max_memory(owner));
    if needed <= max {
        return Ok(());
    }
    if submission.request.run_limits().memory() <= max {
        let language = submission.requirements.language.clone();
        return Err(SchedulerError::LanguageNeedsTooMuchMemory { language, needed, max });
    }
    Err(SchedulerError::MemoryLimitTooLarge { needed, max })
}

/// Admits an execution that is stored when it starts or later.
async fn admit_unstored(
    context: &Arc<Context>,
    execution: &Arc<Execution>,
    new: NewExecution,
    is_short: bool,
) -> Result<Ticket, SchedulerError> {
    // Before others can find it.
    execution.store_later(new);
    context.registry.add(execution, context.quotas())?;
    // Other isolations block the thread without `block_in_place`.
    let blocks_in_place = execution.sandbox.isolation() == Isolation::Native;
    if is_short
        && blocks_in_place
        && let Some(permit) = permit_at_once(context, execution).await
    {
        context.observer.accepted(&execution.requirements.language);
        worker::run_in_place(context, execution, permit);
        let report = context.report(execution).await;
        let report = Some(report).filter(StoredReport::is_final);
        return Ok(Ticket { report, ..new_ticket(execution) });
    }
    Ok(enqueue(context, execution).await)
}

/// Admits an execution whose client follows its events. It is stored before it starts only if it has to wait.
async fn admit_at_once(
    context: &Arc<Context>,
    execution: Arc<Execution>,
    new: NewExecution,
) -> Result<Ticket, SchedulerError> {
    // Before others can find it.
    execution.store_later(new);
    if !context.registry.add_unless_repeated(&execution, context.quotas())? {
        // Whether the other one is accepted is not known yet. The store decides between them.
        return match execution.store_now() {
            Some(new) => admit(context, execution, new).await,
            None => Err(SchedulerError::Internal),
        };
    }
    let started = start_at_once(context, &execution).await;
    if !matches!(&started, Ok(ticket) if ticket.is_new) {
        context.registry.remove(&execution.id);
        // Nobody waits for it for ever.
        execution.set_stored();
    }
    started
}

/// Starts an execution that is in the registry, or has it wait for its turn. The ticket is that of an earlier execution
/// if that one had the same idempotency key.
async fn start_at_once(
    context: &Arc<Context>,
    execution: &Arc<Execution>,
) -> Result<Ticket, SchedulerError> {
    let owner = execution.owner.as_deref();
    if let Some(idempotency) = &execution.idempotency {
        match context.store.duplicate(owner, idempotency).await? {
            // Another request with this key may have had it stored by now.
            Some(InsertOutcome::Duplicate(id)) if id == execution.id => {}
            Some(InsertOutcome::Duplicate(id)) => return Ok(existing_ticket(id)),
            Some(_) => return Err(SchedulerError::IdempotencyConflict),
            None => {}
        }
    }
    if let Some(permit) = permit_at_once(context, execution).await {
        context.observer.accepted(&execution.requirements.language);
        worker::spawn(context, execution, permit);
        return Ok(new_ticket(execution));
    }
    context.store_unstored(execution).await?;
    Ok(enqueue(context, execution).await)
}

/// The capacity for an execution, unless others wait for it or there is none.
async fn permit_at_once(context: &Context, execution: &Execution) -> Option<Permit> {
    if context.queue.depth().await > 0 {
        return None;
    }
    let memory = execution.requirements.memory.as_u64();
    context.budget.try_acquire(execution.owner.as_deref(), memory)
}

async fn admit(
    context: &Context,
    execution: Arc<Execution>,
    new: NewExecution,
) -> Result<Ticket, SchedulerError> {
    if let Err(error) = context.registry.add(&execution, context.quotas()) {
        // A repeated request needs no room.
        return repeated(context, &execution).unwrap_or(Err(error));
    }
    let owner = execution.owner.as_deref();
    if let Some(idempotency) = &execution.idempotency
        && let Some(same) = context.registry.stored_later_with_idempotency(owner, idempotency)
    {
        // The store must find it. If it cannot be stored, neither can the new one.
        let _ = context.store_unstored(&same).await;
        same.stored().await;
    }
    let inserted = context.store.insert(new).await;
    execution.set_stored();
    if !matches!(inserted, Ok(InsertOutcome::New)) {
        context.registry.remove(&execution.id);
    }
    match inserted? {
        InsertOutcome::New => Ok(enqueue(context, &execution).await),
        InsertOutcome::Duplicate(id) => Ok(existing_ticket(id)),
        InsertOutcome::Conflict => Err(SchedulerError::IdempotencyConflict),
    }
}

async fn enqueue(context: &Context, execution: &Arc<Execution>) -> Ticket {
    context.observer.accepted(&execution.requirements.language);
    // The registry has enforced the quotas, so only a closed queue refuses it. Then the server stops, and the next
    // start finds it in the store.
    let _ = context.queue.restore(execution.job()).await;
    new_ticket(execution)
}

/// The ticket of the unfinished execution with the same idempotency key, if there is one.
fn repeated(context: &Context, execution: &Execution) -> Option<Result<Ticket, SchedulerError>> {
    let idempotency = execution.idempotency.as_ref()?;
    let same = context.registry.with_idempotency(execution.owner.as_deref(), idempotency)?;
    let is_same = same.idempotency.as_ref() == Some(idempotency);
    Some(if is_same {
        Ok(existing_ticket(same.id.clone()))
    } else {
        Err(SchedulerError::IdempotencyConflict)
    })
}

fn new_ticket(execution: &Arc<Execution>) -> Ticket {
    Ticket {
        id: execution.id.clone(),
        is_new: true,
        report: None,
        execution: Some(Arc::clone(execution)),
    }
}

fn existing_ticket(id: String) -> Ticket {
    Ticket { id, is_new: false, report: None, execution: None }
}
