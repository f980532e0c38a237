//! Admission of work that is no execution, such as building an environment: it waits in the same queue, fair among
//! the same owners, and takes its memory from the same budget.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use sandbox::ByteSize;
use sandbox_api::{Code, Problem};
use sandbox_store::Job;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use uuid::Uuid;

use super::budget::Permit;
use super::live::lock;
use super::shared::Shared;

/// Permission to do something that uses memory, until it is dropped.
pub(crate) struct Admission {
    _permit: Permit,
}

/// The tasks that wait for admission.
#[derive(Default)]
pub(super) struct Waiters {
    waiting: Mutex<HashMap<String, oneshot::Sender<Permit>>>,
}

/// Removes a job from the queue when the task that waits for it is dropped.
struct Waiter {
    shared: Arc<Shared>,
    id: String,
}

impl Waiters {
    /// Admits this job, if its task still waits.
    pub(super) fn admit(&self, id: &str, permit: Permit) {
        let waiting = lock(&self.waiting).remove(id);
        if let Some(waiting) = waiting {
            // If the task has just been dropped, so is the permit.
            let _ = waiting.send(permit);
        }
    }

    /// Admits nothing any more.
    pub(super) fn close(&self) {
        lock(&self.waiting).clear();
    }
}

/// Waits for admission with this much memory, or with all that the owner can have.
pub(super) async fn wait(
    shared: &Arc<Shared>,
    owner: Option<String>,
    memory: ByteSize,
) -> Result<Admission, Problem> {
    let memory = memory.as_u64().min(shared.budget.max_memory(owner.as_deref()));
    let id = format!("turn_{}", Uuid::now_v7().simple());
    let (sender, permit) = oneshot::channel();
    lock(&shared.waiters.waiting).insert(id.clone(), sender);
    let _waiter = Waiter { shared: Arc::clone(shared), id: id.clone() };
    let stopping = || Problem::new(Code::Unavailable, "the server is stopping");
    // The queue's capacity is for executions; the number of builds is bounded by the tasks that wait for them.
    let job = Job { id, owner, priority: 0, memory };
    shared.queue.restore(job).await.map_err(|_| stopping())?;
    let permit = permit.await.map_err(|_| stopping())?;
    Ok(Admission { _permit: permit })
}

impl Drop for Waiter {
    fn drop(&mut self) {
        lock(&self.shared.waiters.waiting).remove(&self.id);
        // Without a runtime the whole server ends, and the queue with it.
        if let Ok(runtime) = Handle::try_current() {
            let (shared, id) = (Arc::clone(&self.shared), self.id.clone());
            runtime.spawn(async move { shared.queue.remove(&id).await });
        }
    }
}
