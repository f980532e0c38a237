use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use chrono::Utc;
use sandbox::{ByteSize, Status, with_causes};
use sandbox_api::{Code, Problem};
use sandbox_store::{AuditRecord, ExecutionRecord, LocalQueue, Queue, Scope, Store, StoreError};
use serde_json::{Value, json};
use tokio::sync::{Semaphore, watch};

use super::admission::Waiters;
use super::budget::Budget;
use super::caches::SharedCaches;
use super::caps::Caps;
use super::familiar::Familiar;
use super::hub::{Bounds, Hub};
use super::network::NetworkPermission;
use super::transfers::Transfers;
use crate::callbacks::AddressPolicy;
use crate::config::{Config, Packages};
use crate::environments::directory_of;
use crate::keys::Identity;
use crate::metrics::Metrics;
use crate::sandboxes::Sandboxes;

/// How much work is taken and done at once.
#[derive(Clone, Debug)]
pub(super) struct WorkLimits {
    /// The most code and files in one execution.
    pub(super) max_code: ByteSize,
    /// The largest limits of one execution.
    pub(super) caps: Caps,
    /// What keys share.
    pub(super) caches: SharedCaches,
    /// Whether packages are fetched.
    pub(super) packages: Packages,
    /// Where clients have their environments.
    pub(super) environments: PathBuf,
    /// Executions that run at once.
    pub(super) concurrency: usize,
    /// The sum of their memory limits.
    pub(super) memory_budget: ByteSize,
    /// The percentage of both that the executions of one key can have.
    pub(super) share_per_key: u8,
    /// Executions that wait at once.
    pub(super) queue_bound: usize,
    /// Bytes of requests that wait.
    pub(super) queue_memory: ByteSize,
    /// Bytes of requests of one key that wait.
    pub(super) queue_memory_per_key: ByteSize,
    /// Executions of one key that wait or run at once.
    pub(super) quota_per_key: usize,
    /// Whether clients without keys have it too.
    pub(super) limit_local: bool,
    /// What programs may reach.
    pub(super) network: NetworkPermission,
    /// Where callbacks may go.
    pub(super) callback_allow: AddressPolicy,
}

/// What accepting and carrying out share.
pub(super) struct Shared {
    pub(super) sandboxes: Arc<Sandboxes>,
    pub(super) store: Arc<dyn Store>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) limits: WorkLimits,
    pub(super) queue: Arc<dyn Queue>,
    pub(super) hub: Hub,
    pub(super) budget: Arc<Budget>,
    pub(super) waiters: Waiters,
    pub(super) imports: Arc<Transfers>,
    pub(super) exports: Arc<Transfers>,
    pub(super) familiar: Familiar,
    /// Executions that were begun and are not yet stored.
    pub(super) in_hand: watch::Sender<usize>,
    /// Templates are filled one at a time, which bounds the memory of all of them.
    pub(super) templates: Semaphore,
}

impl From<&Config> for WorkLimits {
    fn from(config: &Config) -> Self {
        Self {
            max_code: config.max_code,
            caps: config.caps,
            caches: config.shared_caches,
            packages: config.packages,
            environments: config.environments_directory(),
            concurrency: config.concurrency,
            memory_budget: config.memory_budget,
            share_per_key: config.share_per_key,
            queue_bound: config.queue_bound,
            queue_memory: config.queue_memory,
            queue_memory_per_key: config.queue_memory_per_key,
            quota_per_key: config.quota_per_key,
            limit_local: config.limit_local,
            network: config.network.clone(),
            callback_allow: config.callback_allow.clone(),
        }
    }
}

impl Shared {
    pub(super) fn new(
        limits: WorkLimits,
        sandboxes: Arc<Sandboxes>,
        store: Arc<dyn Store>,
        metrics: Arc<Metrics>,
    ) -> Self {
        let queue: Arc<dyn Queue> = Arc::new(LocalQueue::new(limits.queue_bound));
        let memory = limits.memory_budget.as_u64();
        let (running, share) = (limits.concurrency, limits.share_per_key);
        let budget = Arc::new(Budget::new(running, memory, share, Arc::clone(&queue)));
        Self {
            sandboxes,
            store,
            metrics,
            limits,
            queue,
            hub: Hub::default(),
            budget,
            waiters: Waiters::default(),
            imports: Transfers::new("imports"),
            exports: Transfers::new("exports"),
            familiar: Familiar::default(),
            in_hand: watch::Sender::new(0),
            templates: Semaphore::new(1),
        }
    }

    pub(super) fn bounds(&self) -> Bounds {
        Bounds {
            waiting: self.limits.queue_bound,
            waiting_bytes: self.limits.queue_memory.as_u64(),
            waiting_bytes_per_key: self.limits.queue_memory_per_key.as_u64(),
            per_key: self.limits.quota_per_key,
            of_local: self.limits.limit_local,
        }
    }

    /// Where this client has its environments.
    pub(super) fn environments_of(&self, owner: Option<&str>) -> PathBuf {
        directory_of(&self.limits.environments, owner)
    }

    pub(super) async fn remembered(
        &self,
        id: &str,
        owner: &Identity,
    ) -> Result<ExecutionRecord, Problem> {
        match self.store.execution(id).await {
            Ok(Some(record)) if may_see(owner, record.owner.as_deref()) => Ok(record),
            Ok(_) => Err(no_such(id)),
            Err(error) => Err(store_failed(&error)),
        }
    }

    /// How far an execution is that is not in our hands.
    pub(super) async fn glance(&self, id: &str, owner: &Identity) -> Result<Status, Problem> {
        match self.store.summary(id).await {
            Ok(Some(glance)) if may_see(owner, glance.owner.as_deref()) => Ok(glance.status),
            Ok(_) => Err(no_such(id)),
            Err(error) => Err(store_failed(&error)),
        }
    }

    /// Waits until everything that was begun is stored; false if it takes longer than this.
    pub(super) async fn nothing_in_hand(&self, patience: Duration) -> bool {
        let mut in_hand = self.in_hand.subscribe();
        tokio::time::timeout(patience, in_hand.wait_for(|count| *count == 0)).await.is_ok()
    }

    /// Writes into the audit log. A failure must not undo what was done, so it is only logged.
    pub(super) async fn audit(
        &self,
        actor: Option<String>,
        action: &str,
        subject: &str,
        detail: Value,
    ) {
        let record = audit_record(actor, action, subject, detail);
        if let Err(error) = self.store.audit(record).await {
            tracing::error!(subject, action, error = with_causes(&error), "no audit record");
        }
    }
}

fn audit_record(actor: Option<String>, action: &str, subject: &str, detail: Value) -> AuditRecord {
    let (action, subject) = (action.to_owned(), subject.to_owned());
    AuditRecord { at: Utc::now(), actor, action, subject, detail }
}

/// What the audit log says about an execution that is over.
pub(super) fn audit_of_end(
    owner: Option<String>,
    id: &str,
    language: &str,
    status: Status,
) -> AuditRecord {
    audit_record(owner, "execute", id, json!({ "language": language, "status": status }))
}

pub(super) fn may_see(client: &Identity, owner: Option<&str>) -> bool {
    client.scopes.contains(&Scope::Admin) || client.key.as_deref() == owner
}

/// Also for what is another client's: that it exists is nobody else's business.
pub(super) fn no_such(id: &str) -> Problem {
    Problem::new(Code::NotFound, format!("there is no execution '{}'", id.escape_debug()))
}

/// An execution whose id cannot be told: it could not be stored.
pub(super) fn not_stored() -> Problem {
    Problem::new(Code::Unavailable, "the execution could not be stored")
}

/// A store that fails is told in the log in full, and to clients in general.
pub(super) fn store_failed(error: &StoreError) -> Problem {
    tracing::error!(error = with_causes(error), "the store failed");
    Problem::new(Code::Unavailable, "the server cannot read or write what it remembers")
}
