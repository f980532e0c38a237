//! Accepts requests into the queue.

use std::sync::Arc;
use std::time::Duration;

use chrono::Utc;
use sandbox::{ByteSize, Isolation, Request, Requirements, Sandbox};
use sandbox_api::{Code, ExecuteRequest, Problem};
use sandbox_store::{Idempotency, InsertOutcome, Job, NewCallback, NewExecution};

use super::convert::{code_size, convert, refusal};
use super::live::Live;
use super::report::{self, Told};
use super::shared::{Shared, store_failed};
use super::{worker, workspace};
use crate::callbacks::promise;
use crate::config::Packages;
use crate::keys::Identity;
use crate::policy::permissions;
use crate::problems::invalid;

/// What a client gets for a request.
#[derive(Clone, Debug)]
pub(crate) struct Ticket {
    /// The execution.
    pub(crate) id: String,
    /// Whether this request began it; false if an earlier one of the same name did.
    pub(crate) is_new: bool,
    /// Its report, if it is over already.
    pub(crate) report: Option<Told>,
    /// The execution itself, if this request began it: what cannot be stored is found nowhere else once it is over.
    pub(super) live: Option<Arc<Live>>,
}

/// What the client waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnswerWith {
    /// The id: it is a promise, so what it names is stored before the client hears it.
    Id,
    /// The report, waiting so long for it. Until then nothing was promised, and storing goes on while the
    /// program runs.
    Report(Duration),
}

/// A request that was checked.
struct Checked {
    sandbox: Arc<Sandbox>,
    request: Request,
    needs: Requirements,
    /// As it is stored.
    json: String,
}

/// All executions are equally urgent until somebody can say otherwise.
const PRIORITY: i32 = 0;

pub(super) async fn accept(
    shared: &Arc<Shared>,
    asked: ExecuteRequest,
    client: &Identity,
    idempotency: Option<Idempotency>,
    answer: AnswerWith,
) -> Result<Ticket, Problem> {
    permissions::check(&asked, client)?;
    let owner = client.key.clone();
    let most = shared.limits.max_code;
    if code_size(&asked) > most.as_usize() {
        let reason = format!("the code and files are larger than {most}");
        return Err(Problem::new(Code::CodeTooLarge, reason));
    }
    shared.limits.caps.check(&asked)?;
    if shared.limits.packages == Packages::Off && !asked.packages.is_empty() {
        let reason = "this server fetches none: its setting 'packages' is off";
        return Err(invalid("packages", reason));
    }
    let callback = callback(shared, &asked)?;
    let labels = asked.labels.clone();
    let is_quick = shared.familiar.is_quick_to_check(&asked);
    let Checked { sandbox, request, needs, json } =
        check(shared, asked, owner.clone(), is_quick).await?;
    // It has been run before, so that nothing is prepared for it that takes longer than its limits.
    let longest = needs.wall_time;
    refuse_too_much_memory(shared, owner.as_deref(), &request, &needs)?;
    let created_at = Utc::now();
    let live =
        Live::new(owner.clone(), sandbox, request, needs, idempotency.clone(), created_at, 0);
    let new = NewExecution {
        id: live.id.clone(),
        owner,
        language: live.needs.language.clone(),
        request: json,
        labels,
        priority: PRIORITY,
        created_at,
        started_at: None,
        idempotency,
        callback,
    };
    if let AnswerWith::Report(patience) = answer
        && new.idempotency.is_none()
    {
        let is_over_soon = is_quick && longest.is_some_and(|longest| longest < patience);
        return admit_unstored(shared, &Arc::new(live), new, is_over_soon).await;
    }
    // In a task of its own: a client that goes away in the middle must not leave an execution that is
    // stored and in no queue.
    let shared = Arc::clone(shared);
    let task = tokio::spawn(async move { admit(&shared, Arc::new(live), new).await });
    task.await.unwrap_or_else(|_| Err(Problem::new(Code::Internal, "accepting it failed")))
}

fn callback(shared: &Shared, asked: &ExecuteRequest) -> Result<Option<NewCallback>, Problem> {
    let Some(url) = &asked.callback_url else {
        return Ok(None);
    };
    let callback = promise(url, &shared.limits.callback_allow);
    callback.map(Some).map_err(|error| invalid("callback_url", error))
}

/// Checks the request where it holds nobody up: large ones take time, and a language that is asked for
/// the first time is looked for on the host.
async fn check(
    shared: &Arc<Shared>,
    asked: ExecuteRequest,
    owner: Option<String>,
    is_quick: bool,
) -> Result<Checked, Problem> {
    let _turn = match &asked.template {
        Some(_) => shared.templates.acquire().await.ok(),
        None => None,
    };
    if is_quick {
        return check_here(shared, &asked, owner.as_deref());
    }
    let shared = Arc::clone(shared);
    let checking = tokio::task::spawn_blocking(move || {
        let checked = check_here(&shared, &asked, owner.as_deref())?;
        shared.familiar.add(&asked);
        Ok(checked)
    });
    checking.await.unwrap_or_else(|_| Err(Problem::new(Code::Internal, "checking it failed")))
}

fn check_here(
    shared: &Shared,
    asked: &ExecuteRequest,
    owner: Option<&str>,
) -> Result<Checked, Problem> {
    let sandbox = shared.sandboxes.find(asked.isolation.as_deref());
    let sandbox = Arc::clone(sandbox.map_err(|reason| invalid("isolation", reason))?);
    let environments = shared.environments_of(owner);
    let request =
        convert(asked, owner, None, shared.limits.caches)?.with_environments(environments);
    shared.limits.network.check(request.allow().map(|allow| &**allow))?;
    let needs = sandbox.requirements(&request).map_err(|error| refusal(&error))?;
    workspace::check(&sandbox, &request)?;
    let json = serde_json::to_string(asked)
        .map_err(|error| Problem::new(Code::Internal, error.to_string()))?;
    Ok(Checked { sandbox, request, needs, json })
}

/// What could never run must not wait.
fn refuse_too_much_memory(
    shared: &Shared,
    owner: Option<&str>,
    request: &Request,
    needs: &Requirements,
) -> Result<(), Problem> {
    let max = ByteSize::bytes(shared.budget.max_memory(owner));
    if needs.memory <= max {
        return Ok(());
    }
    let reason =
        format!("{} exceeds the {max} that one client of this server can use", needs.memory);
    if request.run_limits().memory() <= max {
        let reason = format!("compiling or running {} may use {reason}", needs.language);
        return Err(Problem::new(Code::LanguageUnavailable, reason));
    }
    Err(invalid("memory_limit_mb", reason))
}

/// Lets an execution in that is stored when it begins.
async fn admit_unstored(
    shared: &Arc<Shared>,
    live: &Arc<Live>,
    new: NewExecution,
    is_over_soon: bool,
) -> Result<Ticket, Problem> {
    // Before others can find it.
    live.store_later(new);
    shared.hub.add(live, shared.bounds())?;
    // Other walls do not let the other tasks of a thread go on while they wait.
    let waits_in_place = live.sandbox.isolation() == Isolation::Native;
    if is_over_soon
        && waits_in_place
        && shared.queue.depth().await == 0
        && let Ok(permit) =
            shared.budget.try_acquire(live.owner.as_deref(), live.needs.memory.as_u64())
    {
        shared.metrics.accepted(&live.needs.language);
        worker::carry_out_here(shared, live, permit);
        let report = report::of_live_when_stored(shared, live).await;
        let report = Some(report).filter(Told::is_final);
        return Ok(Ticket {
            id: live.id.clone(),
            is_new: true,
            report,
            live: Some(Arc::clone(live)),
        });
    }
    Ok(enqueue(shared, live).await)
}

async fn admit(shared: &Shared, live: Arc<Live>, new: NewExecution) -> Result<Ticket, Problem> {
    if let Err(problem) = shared.hub.add(&live, shared.bounds()) {
        // Asking again for what runs already takes no room.
        return same_again(shared, &live).unwrap_or(Err(problem));
    }
    match shared.store.insert(new).await {
        Ok(InsertOutcome::New) => {
            live.set_stored();
            Ok(enqueue(shared, &live).await)
        }
        Ok(InsertOutcome::Duplicate(id)) => {
            shared.hub.remove(&live.id);
            Ok(Ticket { id, is_new: false, report: None, live: None })
        }
        Ok(InsertOutcome::Conflict) => {
            shared.hub.remove(&live.id);
            Err(conflict())
        }
        Err(error) => {
            shared.hub.remove(&live.id);
            Err(store_failed(&error))
        }
    }
}

async fn enqueue(shared: &Shared, live: &Arc<Live>) -> Ticket {
    shared.metrics.accepted(&live.needs.language);
    // The hub has kept room for it, so that only a queue that was closed refuses it. Then the server
    // stops, and the next start finds it in the store.
    let _ = shared.queue.restore(job(live)).await;
    Ticket { id: live.id.clone(), is_new: true, report: None, live: Some(Arc::clone(live)) }
}

fn same_again(shared: &Shared, live: &Live) -> Option<Result<Ticket, Problem>> {
    let asked = live.idempotency.as_ref()?;
    let same = shared.hub.same(live.owner.as_deref(), asked)?;
    let is_same = same.idempotency.as_ref() == Some(asked);
    Some(if is_same {
        Ok(Ticket { id: same.id.clone(), is_new: false, report: None, live: None })
    } else {
        Err(conflict())
    })
}

fn conflict() -> Problem {
    let reason = "this Idempotency-Key was used for another request";
    Problem::new(Code::IdempotencyConflict, reason)
}

/// What the queue needs to know of an execution.
pub(super) fn job(live: &Live) -> Job {
    Job {
        id: live.id.clone(),
        owner: live.owner.clone(),
        priority: PRIORITY,
        memory: live.needs.memory.as_u64(),
    }
}
