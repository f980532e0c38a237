//! The unfinished executions by id, and the quotas on them.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};

use sandbox::ByteSize;
use sandbox_store::Idempotency;

use crate::error::SchedulerError;
use crate::execution::{Execution, Outcome};
use crate::lock::lock;

/// The unfinished executions. A finished one is removed only after the store has all of it, so an execution that is not
/// here is in the store.
#[derive(Default)]
pub(crate) struct Registry {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    executions: HashMap<String, Arc<Execution>>,
    /// What each owner uses of its quota. All clients without a key are one owner, because an address on loopback can
    /// be chosen freely.
    by_owner: HashMap<Option<String>, OwnerUsage>,
    /// The executions that count in `by_owner`.
    counted: HashSet<String>,
    /// The executions that are not started, with the bytes that each keeps in memory until then.
    waiting: HashMap<String, u64>,
    waiting_bytes: u64,
    is_closed: bool,
}

/// What the executions of one owner use.
#[derive(Default)]
struct OwnerUsage {
    count: usize,
    waiting_bytes: u64,
}

/// The maximums.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Quotas {
    /// Waiting executions.
    pub(crate) waiting: usize,
    /// Bytes of waiting requests.
    pub(crate) waiting_bytes: u64,
    /// Bytes of waiting requests of one owner.
    pub(crate) waiting_bytes_per_owner: u64,
    /// Unfinished executions of one owner.
    pub(crate) unfinished_per_owner: usize,
    /// Whether the maximums per owner also apply to clients without a key.
    pub(crate) limit_keyless: bool,
}

impl Registry {
    /// Adds a new execution, within the quotas.
    pub(crate) fn add(
        &self,
        execution: &Arc<Execution>,
        quotas: Quotas,
    ) -> Result<(), SchedulerError> {
        lock(&self.state).add(execution, quotas)
    }

    /// Adds a new execution like [`Self::add`], unless there is one with its idempotency key.
    pub(crate) fn add_unless_repeated(
        &self,
        execution: &Arc<Execution>,
        quotas: Quotas,
    ) -> Result<bool, SchedulerError> {
        let mut state = lock(&self.state);
        let owner = execution.owner.as_deref();
        if let Some(idempotency) = &execution.idempotency
            && state.with_idempotency(owner, idempotency).next().is_some()
        {
            return Ok(false);
        }
        state.add(execution, quotas).map(|()| true)
    }

    /// Adds an execution that an earlier run of the server accepted, whatever the quotas.
    pub(crate) fn restore(&self, execution: &Arc<Execution>) {
        lock(&self.state).insert(execution);
    }

    /// An execution was started: it waits no more.
    pub(crate) fn set_started(&self, id: &str) {
        let mut state = lock(&self.state);
        if let Some(execution) = state.executions.get(id).cloned() {
            state.stop_waiting(&execution);
        }
    }

    /// Returns the quota of a finished execution to its owner. The execution can still be found.
    pub(crate) fn release_quota(&self, execution: &Execution) {
        lock(&self.state).release_quota(execution);
    }

    /// Removes an execution.
    pub(crate) fn remove(&self, id: &str) {
        let mut state = lock(&self.state);
        if let Some(execution) = state.executions.remove(id) {
            state.release_quota(&execution);
        }
    }

    /// The bytes of the waiting requests.
    pub(crate) fn waiting_bytes(&self) -> u64 {
        lock(&self.state).waiting_bytes
    }

    pub(crate) fn get(&self, id: &str) -> Option<Arc<Execution>> {
        lock(&self.state).executions.get(id).cloned()
    }

    /// The unfinished execution of this owner with this idempotency key.
    pub(crate) fn with_idempotency(
        &self,
        owner: Option<&str>,
        idempotency: &Idempotency,
    ) -> Option<Arc<Execution>> {
        lock(&self.state).with_idempotency(owner, idempotency).next().cloned()
    }

    /// The same if it is stored later than at its acceptance.
    pub(crate) fn stored_later_with_idempotency(
        &self,
        owner: Option<&str>,
        idempotency: &Idempotency,
    ) -> Option<Arc<Execution>> {
        let state = lock(&self.state);
        let mut same = state.with_idempotency(owner, idempotency);
        same.find(|execution| execution.is_stored_later()).cloned()
    }

    /// Accepts nothing any more.
    pub(crate) fn close(&self) {
        lock(&self.state).is_closed = true;
    }

    pub(crate) fn is_closed(&self) -> bool {
        lock(&self.state).is_closed
    }

    pub(crate) fn all(&self) -> Vec<Arc<Execution>> {
        lock(&self.state).executions.values().cloned().collect()
    }

    /// Leaves all unfinished executions to the next start.
    pub(crate) fn requeue_all(&self) {
        for execution in self.all() {
            if execution.outcome().is_none() {
                execution.end(Outcome::Requeued);
            }
            self.remove(&execution.id);
        }
    }
}

impl State {
    fn add(&mut self, execution: &Arc<Execution>, quotas: Quotas) -> Result<(), SchedulerError> {
        if self.is_closed {
            return Err(SchedulerError::Stopping);
        }
        let is_limited = execution.owner.is_some() || quotas.limit_keyless;
        let bytes = execution.waiting_bytes();
        let usage = self.by_owner.get(&execution.owner);
        let (count, own_bytes) = usage.map_or((0, 0), |usage| (usage.count, usage.waiting_bytes));
        if is_limited && count >= quotas.unfinished_per_owner {
            return Err(SchedulerError::TooManyUnfinished { max: quotas.unfinished_per_owner });
        }
        if is_limited && own_bytes.saturating_add(bytes) > quotas.waiting_bytes_per_owner {
            let max = ByteSize::bytes(quotas.waiting_bytes_per_owner);
            return Err(SchedulerError::TooManyWaitingBytesOfClient { max });
        }
        if self.waiting_bytes.saturating_add(bytes) > quotas.waiting_bytes {
            let max = ByteSize::bytes(quotas.waiting_bytes);
            return Err(SchedulerError::TooManyWaitingBytes { max });
        }
        if self.waiting.len() >= quotas.waiting {
            return Err(SchedulerError::QueueFull { max: quotas.waiting });
        }
        if let Some(other) = self.other_writer(execution) {
            let name = execution.writes_to.clone().unwrap_or_default();
            return Err(SchedulerError::WorkspaceInUse { name, by: other.id.clone() });
        }
        self.insert(execution);
        Ok(())
    }

    fn with_idempotency(
        &self,
        owner: Option<&str>,
        idempotency: &Idempotency,
    ) -> impl Iterator<Item = &Arc<Execution>> {
        self.executions.values().filter(move |execution| {
            let key = execution.idempotency.as_ref().map(|idempotency| &idempotency.key);
            execution.owner.as_deref() == owner && key == Some(&idempotency.key)
        })
    }

    /// Another unfinished execution of the same owner that may write to the same workspace.
    fn other_writer(&self, execution: &Execution) -> Option<&Arc<Execution>> {
        execution.writes_to.as_ref()?;
        self.executions.values().find(|other| {
            other.writes_to == execution.writes_to
                && other.owner == execution.owner
                && other.outcome().is_none()
        })
    }

    fn release_quota(&mut self, execution: &Execution) {
        self.stop_waiting(execution);
        // Once for each execution.
        if !self.counted.remove(&execution.id) {
            return;
        }
        if let Some(usage) = self.by_owner.get_mut(&execution.owner) {
            usage.count -= 1;
            if usage.count == 0 {
                self.by_owner.remove(&execution.owner);
            }
        }
    }

    fn stop_waiting(&mut self, execution: &Execution) {
        let Some(bytes) = self.waiting.remove(&execution.id) else { return };
        self.waiting_bytes -= bytes;
        if let Some(usage) = self.by_owner.get_mut(&execution.owner) {
            usage.waiting_bytes -= bytes;
        }
    }

    fn insert(&mut self, execution: &Arc<Execution>) {
        self.counted.insert(execution.id.clone());
        let bytes = execution.waiting_bytes();
        let usage = self.by_owner.entry(execution.owner.clone()).or_default();
        usage.count += 1;
        usage.waiting_bytes += bytes;
        self.waiting.insert(execution.id.clone(), bytes);
        self.waiting_bytes += bytes;
        self.executions.insert(execution.id.clone(), Arc::clone(execution));
    }
}
