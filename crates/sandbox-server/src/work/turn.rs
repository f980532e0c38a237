//! Turns for work that is no execution: it waits in the same queue, fair among the same clients, and
//! takes its memory from the same budget.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use sandbox::ByteSize;
use sandbox_api::{Code, Problem};
use sandbox_store::Job;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use uuid::Uuid;

use super::budget::Place;
use super::live::lock;
use super::shared::Shared;

/// Leave to do something that uses memory, until it is dropped.
pub(crate) struct Turn {
    _place: Place,
}

/// Those who wait for their turn.
#[derive(Default)]
pub(super) struct Turns {
    waiting: Mutex<HashMap<String, oneshot::Sender<Place>>>,
}

/// Takes a job out of the queue if whoever waits for it goes away.
struct Ticket {
    shared: Arc<Shared>,
    id: String,
}

impl Turns {
    /// It is the turn of this job, if anybody still waits for it.
    pub(super) fn come(&self, id: &str, place: Place) {
        let waiting = lock(&self.waiting).remove(id);
        if let Some(waiting) = waiting {
            // Whoever went away just now gives the place back by dropping it.
            let _ = waiting.send(place);
        }
    }

    /// No more turns come.
    pub(super) fn close(&self) {
        lock(&self.waiting).clear();
    }
}

/// Waits for a turn with so much memory, or with all that there is.
pub(super) async fn wait(
    shared: &Arc<Shared>,
    owner: Option<String>,
    memory: ByteSize,
) -> Result<Turn, Problem> {
    let memory = memory.min(shared.limits.memory_budget).as_u64();
    let id = format!("turn_{}", Uuid::now_v7().simple());
    let (sender, place) = oneshot::channel();
    lock(&shared.turns.waiting).insert(id.clone(), sender);
    let _ticket = Ticket { shared: Arc::clone(shared), id: id.clone() };
    let stopping = || Problem::new(Code::Unavailable, "the server is stopping");
    // The bound is for executions; how many of these there are is bounded by those who wait for them.
    let job = Job { id, owner, priority: 0, memory };
    shared.queue.restore(job).await.map_err(|_| stopping())?;
    let place = place.await.map_err(|_| stopping())?;
    Ok(Turn { _place: place })
}

impl Drop for Ticket {
    fn drop(&mut self) {
        lock(&self.shared.turns.waiting).remove(&self.id);
        // Without a runtime everything ends, the queue too.
        if let Ok(runtime) = Handle::try_current() {
            let (shared, id) = (Arc::clone(&self.shared), self.id.clone());
            runtime.spawn(async move { shared.queue.remove(&id).await });
        }
    }
}
