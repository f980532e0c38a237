//! Recovers the executions that an earlier run of the server accepted and did not finish.
//!
//! A waiting execution is queued again. A running one runs a second time, because the machine may have failed for
//! other reasons; if that attempt is interrupted too, the execution is ended, so that no program can crash the server
//! again and again.

use std::sync::Arc;
use std::time::Duration;

use chrono::Utc;
use sandbox::{Acceptance, ByteSize, ExecutionId, Request, Requirements, Sandbox, Status};
use sandbox_store::{ExecutionRecord, FinishedExecution, StoreError};
use serde_json::Value;

use crate::context::{Context, audit_of_execution};
use crate::execution::{Execution, ExecutionParts};
use crate::journal::Journal;
use crate::report::{self, StoredReport};

/// An execution that was started this often is not started again.
const MAX_ATTEMPTS: u32 = 2;

/// Reads stored requests back.
pub trait RequestDecoder: Send + Sync + 'static {
    /// Decodes the request of an execution of this owner. May block. The error says why this server would not accept
    /// the request.
    fn decode(
        &self,
        id: ExecutionId,
        owner: Option<&str>,
        stored: Value,
    ) -> Result<DecodedRequest, String>;
}

/// A request that was read back.
#[derive(Debug)]
pub struct DecodedRequest {
    /// The sandbox that it runs in.
    pub sandbox: Arc<Sandbox>,
    /// The request, with the id of the execution.
    pub request: Request,
    /// What [`Sandbox::requirements`] returned for the request.
    pub requirements: Requirements,
}

pub(crate) async fn recover(
    context: &Arc<Context>,
    decoder: &Arc<dyn RequestDecoder>,
) -> Result<(), StoreError> {
    for record in context.store.unfinished().await? {
        let Ok(id) = record.id.parse::<ExecutionId>() else {
            return Err(StoreError::Corrupt(format!("'{}' is not an id", record.id)));
        };
        let was_running = record.status == Status::Running;
        if was_running && record.attempts >= MAX_ATTEMPTS {
            let reason = "the server was stopped while it ran, more than once";
            abandon(context, id, record, reason).await?;
            continue;
        }
        match restore(context, decoder, id, &record).await {
            Ok(execution) => {
                if was_running {
                    context.store.requeue(&record.id).await?;
                }
                let execution = Arc::new(execution);
                context.registry.restore(&execution);
                // A closed queue leaves it to the next start.
                let _ = context.queue.restore(execution.job()).await;
            }
            Err(reason) => abandon(context, id, record, &reason).await?,
        }
    }
    Ok(())
}

/// The execution as it was accepted, if this server would still accept it.
async fn restore(
    context: &Arc<Context>,
    decoder: &Arc<dyn RequestDecoder>,
    id: ExecutionId,
    record: &ExecutionRecord,
) -> Result<Execution, String> {
    let (decoder, stored) = (Arc::clone(decoder), record.request.clone());
    let owner = record.owner.clone();
    let task = tokio::task::spawn_blocking(move || decoder.decode(id, owner.as_deref(), stored));
    let DecodedRequest { sandbox, request, requirements } =
        task.await.map_err(|error| error.to_string())??;
    let max = ByteSize::bytes(context.budget.max_memory(record.owner.as_deref()));
    if requirements.memory > max {
        return Err(format!(
            "{} of memory exceeds the {max} that one client can use",
            requirements.memory
        ));
    }
    let execution = Execution::new(ExecutionParts {
        owner: record.owner.clone(),
        sandbox,
        request,
        requirements,
        idempotency: None,
        created_at: record.created_at,
        attempts: record.attempts,
        observer: context.observer.observe(),
    });
    execution.set_stored();
    Ok(execution)
}

/// Ends an execution that cannot run.
async fn abandon(
    context: &Context,
    id: ExecutionId,
    record: ExecutionRecord,
    reason: &str,
) -> Result<(), StoreError> {
    let acceptance = Acceptance { at: record.created_at, waited: Duration::ZERO };
    let status = Status::Error;
    let report = report::not_started(id, &record.language, "", acceptance, status, reason);
    let finished = FinishedExecution {
        status,
        report: StoredReport::from(&report).json,
        events: Journal::after(record.attempts).close(),
        at: Utc::now(),
        audit: audit_of_execution(record.owner.clone(), &record.id, &record.language, status),
        id: record.id,
    };
    context.store.finish(finished).await?;
    context.observer.abandoned(record.owner.as_deref(), &report);
    Ok(())
}
