//! What an earlier run of the server accepted and did not end.
//!
//! What only waited is queued again. What was running is run a second time, because the machine may
//! have failed for reasons of its own; if that run is cut short too, the execution is ended, so that no
//! program can take the server down again and again.

use std::sync::Arc;
use std::time::Duration;

use chrono::Utc;
use sandbox::{Acceptance, ByteSize, ExecutionId, Status};
use sandbox_api::ExecuteRequest;
use sandbox_store::{ExecutionRecord, FinishedExecution, StoreError};

use super::accept::job;
use super::convert::{convert, refusal};
use super::live::Live;
use super::report::Told;
use super::shared::{Shared, audit_of_end};
use super::{observe, report};

/// An execution that was begun this often is not begun again.
const MAX_ATTEMPTS: u32 = 2;

pub(super) async fn recover(shared: &Arc<Shared>) -> Result<(), StoreError> {
    for record in shared.store.unfinished().await? {
        let Ok(id) = record.id.parse::<ExecutionId>() else {
            return Err(StoreError::Corrupt(format!("'{}' is not an id", record.id)));
        };
        let was_running = record.status == Status::Running;
        if was_running && record.attempts >= MAX_ATTEMPTS {
            let reason = "the server was stopped while it ran, more than once";
            give_up(shared, id, record, reason).await?;
            continue;
        }
        match again(shared, id, &record).await {
            Ok(live) => {
                if was_running {
                    shared.store.requeue(&record.id).await?;
                }
                let live = Arc::new(live);
                shared.hub.add_again(&live);
                // A queue that is closed already leaves it to the next start.
                let _ = shared.queue.restore(job(&live)).await;
            }
            Err(reason) => give_up(shared, id, record, &reason).await?,
        }
    }
    Ok(())
}

/// The execution as it was accepted, if this server would still accept it.
async fn again(
    shared: &Arc<Shared>,
    id: ExecutionId,
    record: &ExecutionRecord,
) -> Result<Live, String> {
    let (json, sandboxes) = (record.request.clone(), Arc::clone(&shared.sandboxes));
    let environments = shared.environments_of(record.owner.as_deref());
    let (owner, caches) = (record.owner.clone(), shared.limits.caches);
    let checking = tokio::task::spawn_blocking(move || {
        let asked: ExecuteRequest =
            serde_json::from_value(json).map_err(|error| error.to_string())?;
        let sandbox = Arc::clone(sandboxes.find(asked.isolation.as_deref())?);
        let request = convert(&asked, owner.as_deref(), Some(id), caches)
            .map_err(|problem| problem.detail)?;
        let request = request.with_environments(environments);
        let needs = sandbox.requirements(&request).map_err(|error| refusal(&error).detail)?;
        Ok((sandbox, request, needs))
    });
    let checked: Result<_, String> = checking.await.map_err(|error| error.to_string())?;
    let (sandbox, request, needs) = checked?;
    let max = ByteSize::bytes(shared.budget.max_memory(record.owner.as_deref()));
    if needs.memory > max {
        return Err(format!(
            "{} of memory exceeds the {max} that one client can use",
            needs.memory
        ));
    }
    let live = Live::new(
        record.owner.clone(),
        sandbox,
        request,
        needs,
        None,
        record.created_at,
        record.attempts,
    );
    live.set_stored();
    Ok(live)
}

/// Ends an execution that cannot be carried out.
async fn give_up(
    shared: &Shared,
    id: ExecutionId,
    record: ExecutionRecord,
    reason: &str,
) -> Result<(), StoreError> {
    let acceptance = Acceptance { at: record.created_at, waited: Duration::ZERO };
    let ended =
        report::not_carried_out(id, &record.language, "", acceptance, Status::Error, reason);
    let ending = FinishedExecution {
        status: Status::Error,
        report: Told::of(&ended).json,
        events: report::only_event(record.attempts),
        at: Utc::now(),
        audit: audit_of_end(record.owner.clone(), &record.id, &record.language, Status::Error),
        id: record.id,
    };
    shared.store.finish(ending).await?;
    observe::given_up(shared, record.owner.as_deref(), &ended);
    Ok(())
}
