//! Admission of work that is no execution, such as building an environment: it waits in the same queue, fair among
//! the same owners, and takes its memory from the same budget.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use sandbox::ByteSize;
use sandbox_store::{Job, Queue};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use uuid::Uuid;

use crate::budget::{Budget, Permit};
use crate::error::SchedulerError;
use crate::lock::lock;

/// Permission to do something that uses memory, until it is dropped.
pub struct Admission {
    _permit: Permit,
}

/// The tasks that wait for admission.
pub(crate) struct Admissions {
    queue: Arc<dyn Queue>,
    budget: Arc<Budget>,
    waiting: Mutex<HashMap<String, oneshot::Sender<Permit>>>,
}

/// Removes a job from the queue when the task that waits for it is dropped.
struct Waiter {
    admissions: Arc<Admissions>,
    id: String,
}

impl Admissions {
    pub(crate) fn new(queue: Arc<dyn Queue>, budget: Arc<Budget>) -> Self {
        Self { queue, budget, waiting: Mutex::default() }
    }

    /// Waits for admission with this much memory, or with all that the owner can have.
    pub(crate) async fn wait(
        self: &Arc<Self>,
        owner: Option<String>,
        memory: ByteSize,
    ) -> Result<Admission, SchedulerError> {
        let memory = memory.as_u64().min(self.budget.max_memory(owner.as_deref()));
        let id = format!("admission_{}", Uuid::now_v7().simple());
        let (sender, permit) = oneshot::channel();
        lock(&self.waiting).insert(id.clone(), sender);
        let _waiter = Waiter { admissions: Arc::clone(self), id: id.clone() };
        // The queue's capacity is for executions; the number of builds is bounded by the tasks that wait for them.
        let job = Job { id, owner, priority: 0, memory, attempts: 0 };
        self.queue.restore(job).await.map_err(|_| SchedulerError::Stopping)?;
        let permit = permit.await.map_err(|_| SchedulerError::Stopping)?;
        Ok(Admission { _permit: permit })
    }

    /// Admits this job, if its task still waits.
    pub(crate) fn admit(&self, id: &str, permit: Permit) {
        let waiting = lock(&self.waiting).remove(id);
        if let Some(waiting) = waiting {
            // If the task has just been dropped, so is the permit.
            let _ = waiting.send(permit);
        }
    }

    /// Admits nothing any more.
    pub(crate) fn close(&self) {
        lock(&self.waiting).clear();
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        lock(&self.admissions.waiting).remove(&self.id);
        // Without a runtime the whole server ends, and the queue with it.
        if let Ok(runtime) = Handle::try_current() {
            let (admissions, id) = (Arc::clone(&self.admissions), self.id.clone());
            runtime.spawn(async move { admissions.queue.remove(&id).await });
        }
    }
}
