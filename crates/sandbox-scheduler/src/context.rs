use std::sync::Arc;
use std::time::Duration;

use sandbox::{ByteSize, Status, with_causes};
use sandbox_store::{AuditRecord, ExecutionRecord, Queue, Store, StoreError};
use serde_json::{Value, json};
use tokio::sync::watch;
use uuid::Uuid;

use crate::admission::Admissions;
use crate::budget::Budget;
use crate::bus::{Bus, LocalBus};
use crate::error::SchedulerError;
use crate::execution::Execution;
use crate::identity::Identity;
use crate::observer::Observer;
use crate::registry::{Quotas, Registry};
use crate::report::StoredReport;

/// The capacity of a scheduler and the quotas of its clients.
#[derive(Clone, Copy, Debug)]
pub struct SchedulerLimits {
    /// The maximum number of executions that run at once.
    pub concurrency: usize,
    /// The maximum sum of their memory limits.
    pub memory_budget: ByteSize,
    /// The percentage of both that the executions of one key can use.
    pub share_per_key: u8,
    /// The maximum number of waiting executions.
    pub queue_bound: usize,
    /// The maximum size of the waiting requests together.
    pub queue_memory: ByteSize,
    /// The maximum size of the waiting requests of one key.
    pub queue_memory_per_key: ByteSize,
    /// The maximum number of unfinished executions of one key.
    pub quota_per_key: usize,
    /// Whether the maximums per key also apply to clients without a key.
    pub limit_local: bool,
}

/// What the parts of a scheduler share.
pub(crate) struct Context {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) observer: Arc<dyn Observer>,
    limits: SchedulerLimits,
    /// The name under which this process claims jobs.
    pub(crate) worker: String,
    pub(crate) queue: Arc<dyn Queue>,
    pub(crate) registry: Arc<Registry>,
    pub(crate) bus: Arc<dyn Bus>,
    pub(crate) budget: Arc<Budget>,
    pub(crate) admissions: Arc<Admissions>,
    /// The number of executions that were started and whose results are not stored yet.
    pub(crate) in_flight: watch::Sender<usize>,
}

impl Context {
    pub(crate) fn new(
        limits: SchedulerLimits,
        queue: Arc<dyn Queue>,
        store: Arc<dyn Store>,
        observer: Arc<dyn Observer>,
    ) -> Self {
        let registry = Arc::<Registry>::default();
        let memory = limits.memory_budget.as_u64();
        let (running, share) = (limits.concurrency, limits.share_per_key);
        let budget = Arc::new(Budget::new(running, memory, share, Arc::clone(&queue)));
        let admissions = Arc::new(Admissions::new(Arc::clone(&queue), Arc::clone(&budget)));
        Self {
            observer,
            limits,
            worker: format!("worker_{}", Uuid::now_v7().simple()),
            queue,
            bus: Arc::new(LocalBus::new(Arc::clone(&registry), Arc::clone(&store))),
            registry,
            store,
            budget,
            admissions,
            in_flight: watch::Sender::new(0),
        }
    }

    pub(crate) fn quotas(&self) -> Quotas {
        Quotas {
            waiting: self.limits.queue_bound,
            waiting_bytes: self.limits.queue_memory.as_u64(),
            waiting_bytes_per_owner: self.limits.queue_memory_per_key.as_u64(),
            unfinished_per_owner: self.limits.quota_per_key,
            limit_keyless: self.limits.limit_local,
        }
    }

    /// An execution from the store, if this client may see it.
    pub(crate) async fn stored(
        &self,
        id: &str,
        client: &Identity,
    ) -> Result<ExecutionRecord, SchedulerError> {
        match self.store.execution(id).await? {
            Some(record) if client.may_see(record.owner.as_deref()) => Ok(record),
            _ => Err(SchedulerError::NotFound(id.to_owned())),
        }
    }

    /// The status of an execution from the store, if this client may see it.
    pub(crate) async fn stored_status(
        &self,
        id: &str,
        client: &Identity,
    ) -> Result<Status, SchedulerError> {
        match self.store.summary(id).await? {
            Some(summary) if client.may_see(summary.owner.as_deref()) => Ok(summary.status),
            _ => Err(SchedulerError::NotFound(id.to_owned())),
        }
    }

    /// The report of an unfinished execution, or of one that just finished.
    pub(crate) async fn report(&self, execution: &Execution) -> StoredReport {
        execution.with_stored(execution.report(), &*self.store).await
    }

    /// Inserts an execution that was not stored when it was accepted, unless somebody else does.
    pub(crate) async fn store_unstored(&self, execution: &Execution) -> Result<(), StoreError> {
        let Some(new) = execution.take_unstored() else {
            return Ok(());
        };
        let _stored = StoredOnDrop { execution, is_started: new.started_at.is_some() };
        let stored = self.store.insert(new.clone()).await;
        if stored.is_err() {
            execution.store_later(new);
        }
        stored.map(drop)
    }

    /// Waits until all started executions are stored. Returns false if that takes longer than the timeout.
    pub(crate) async fn all_stored(&self, timeout: Duration) -> bool {
        let mut in_flight = self.in_flight.subscribe();
        tokio::time::timeout(timeout, in_flight.wait_for(|count| *count == 0)).await.is_ok()
    }

    /// Appends an entry to the audit log. A failure does not undo the action, so it is only logged.
    pub(crate) async fn audit(
        &self,
        actor: Option<String>,
        action: &str,
        subject: &str,
        detail: Value,
    ) {
        let record = AuditRecord::new(actor, action, subject, detail);
        if let Err(error) = self.store.audit(record).await {
            tracing::error!(subject, action, error = with_causes(&error), "no audit record");
        }
    }
}

/// Marks an execution as stored when it is dropped: also if storing failed, or if the task that stores is dropped
/// because the server ends. So nobody waits for ever.
pub(crate) struct StoredOnDrop<E: std::ops::Deref<Target = Execution>> {
    pub(crate) execution: E,
    /// Whether its start is stored, too.
    pub(crate) is_started: bool,
}

impl<E: std::ops::Deref<Target = Execution>> Drop for StoredOnDrop<E> {
    fn drop(&mut self) {
        if self.is_started {
            self.execution.set_start_stored();
        } else {
            self.execution.set_stored();
        }
    }
}

/// The entry of the audit log for a finished execution.
pub(crate) fn audit_of_execution(
    owner: Option<String>,
    id: &str,
    language: &str,
    status: Status,
) -> AuditRecord {
    AuditRecord::new(owner, "execute", id, json!({ "language": language, "status": status }))
}
