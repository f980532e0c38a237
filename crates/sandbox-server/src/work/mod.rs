//! Executions from acceptance to report: what handlers call, and what goes on behind it.
//!
//! [`convert`] checks what a client wrote, [`accept`] finds room for it and remembers it, [`worker`]
//! carries it out when its turn comes, and [`hub`] knows everything that is not over. What is over is in
//! the store, and an execution is there before its client hears its id; its end is told when the store
//! was asked to write it.

mod template;

mod caches;
mod caps;
mod convert;
pub(crate) mod workspace;

mod events;
mod familiar;
mod live;
mod network;
pub(crate) mod permissions;

mod budget;
mod hub;
mod shared;
mod transfers;

mod accept;
mod admission;
mod observe;
mod recover;
mod report;
mod worker;

mod stream;

#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use sandbox::{ByteSize, Status};
use sandbox_api::{Code, ExecuteRequest, Problem};
use sandbox_store::{ExecutionFilter, Idempotency, Page, Store, StoreError};
use serde_json::Value;
use tokio::task::JoinHandle;

use crate::config::Config;
use crate::keys::Identity;
use crate::metrics::Metrics;
use crate::sandboxes::Sandboxes;
pub(crate) use accept::{AnswerWith, Ticket};
pub(crate) use admission::Admission;
pub(crate) use caches::SharedCaches;
pub(crate) use caps::Caps;
use live::{Live, lock};
pub(crate) use network::NetworkPermission;
pub(crate) use report::Told;
use report::is_final;
use shared::{Shared, WorkLimits, may_see, no_such, not_stored, store_failed};
pub(crate) use stream::EventStream;
pub(crate) use transfers::Transfer;
pub(crate) use worker::wait_in_place;

/// How long `cancel` waits for the end that it asked for. Programs are killed at once, so this is for
/// machines that are very busy.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a stop waits for executions that it cancelled.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);

/// All executions of this server.
pub(crate) struct Work {
    shared: Arc<Shared>,
    /// `None` once it was waited for.
    dispatcher: Mutex<Option<JoinHandle<()>>>,
    /// Stores what takes long, until this is dropped.
    keeper: JoinHandle<()>,
}

impl Work {
    /// Begins to carry out what is accepted. Needs a running Tokio.
    pub(crate) fn start(
        sandboxes: Arc<Sandboxes>,
        store: Arc<dyn Store>,
        config: &Config,
        metrics: Arc<Metrics>,
    ) -> Arc<Self> {
        Arc::new(Self::within(config.into(), sandboxes, store, metrics))
    }

    fn within(
        limits: WorkLimits,
        sandboxes: Arc<Sandboxes>,
        store: Arc<dyn Store>,
        metrics: Arc<Metrics>,
    ) -> Self {
        let shared = Arc::new(Shared::new(limits, sandboxes, store, metrics));
        let dispatcher = tokio::spawn(worker::dispatch(Arc::clone(&shared)));
        let keeper = tokio::spawn(worker::store_what_takes_long(Arc::clone(&shared)));
        Self { shared, dispatcher: Mutex::new(Some(dispatcher)), keeper }
    }

    /// Takes a request, or says why not. What was taken is carried out even if nobody waits for it.
    pub(crate) async fn accept(
        &self,
        request: ExecuteRequest,
        owner: &Identity,
        idempotency: Option<Idempotency>,
        answer: AnswerWith,
    ) -> Result<Ticket, Problem> {
        accept::accept(&self.shared, request, owner, idempotency, answer).await
    }

    /// Sees to it that an execution is stored whose id is going to be told after all.
    pub(crate) async fn promise(&self, id: &str) -> Result<(), Problem> {
        let Some(live) = self.shared.hub.get(id) else {
            // What is not here any more is there, unless it could not be stored.
            if !self.shared.store.is_degraded() {
                return Ok(());
            }
            let found = self.shared.store.summary(id).await;
            let found = found.map_err(|error| store_failed(&error))?;
            return found.map(drop).ok_or_else(not_stored);
        };
        let stored = worker::store_unstored(&self.shared, &live).await;
        stored.map_err(|error| store_failed(&error))?;
        live.stored().await;
        // Somebody else may have tried in vain.
        if live.is_unstored() { Err(not_stored()) } else { Ok(()) }
    }

    /// The report so far.
    pub(crate) async fn report(&self, id: &str, owner: &Identity) -> Result<Told, Problem> {
        match self.live(id, owner)? {
            Some(live) => Ok(report::of_live_when_stored(&self.shared, &live).await),
            None => self.shared.remembered(id, owner).await.map(report::of_record),
        }
    }

    /// Whether it is over. For whoever does not need its report, which may be long.
    pub(crate) async fn is_over(&self, id: &str, owner: &Identity) -> Result<bool, Problem> {
        match self.live(id, owner)? {
            Some(live) => Ok(live.outcome().is_some()),
            None => self.shared.glance(id, owner).await.map(is_final),
        }
    }

    /// The report, when it is final or patience ends.
    pub(crate) async fn wait(
        &self,
        id: &str,
        owner: &Identity,
        patience: Duration,
    ) -> Result<Told, Problem> {
        let Some(live) = self.live(id, owner)? else {
            return self.shared.remembered(id, owner).await.map(report::of_record);
        };
        Ok(self.wait_for(&live, patience).await)
    }

    /// The same of what this request began, wherever it is by now.
    pub(crate) async fn wait_for_ticket(
        &self,
        ticket: &Ticket,
        owner: &Identity,
        patience: Duration,
    ) -> Result<Told, Problem> {
        match &ticket.live {
            Some(live) => Ok(self.wait_for(live, patience).await),
            None => self.wait(&ticket.id, owner, patience).await,
        }
    }

    async fn wait_for(&self, live: &Live, patience: Duration) -> Told {
        // Both answers are right: the report then says how far it is.
        let _ = tokio::time::timeout(patience, live.ended()).await;
        report::of_live_when_stored(&self.shared, live).await
    }

    /// Ends an execution. One that is over stays as it is.
    pub(crate) async fn cancel(&self, id: &str, owner: &Identity) -> Result<Told, Problem> {
        let Some(live) = self.live(id, owner)? else {
            return self.shared.remembered(id, owner).await.map(report::of_record);
        };
        self.shared.audit(owner.key.clone(), "cancel", id, Value::Null).await;
        live.cancel_for_client();
        if self.shared.queue.remove(id).await {
            let shared = Arc::clone(&self.shared);
            let live = Arc::clone(&live);
            // In a task of its own: the client may go away, the execution must still end.
            tokio::spawn(async move {
                worker::end_without_running(&shared, &live, Status::Cancelled, "cancelled").await;
            });
        }
        self.wait(id, owner, CANCEL_TIMEOUT).await
    }

    /// The events after this number, those to come included.
    pub(crate) async fn events(
        &self,
        id: &str,
        owner: &Identity,
        after: u64,
    ) -> Result<EventStream, Problem> {
        if let Some(live) = self.live(id, owner)? {
            return Ok(EventStream::live(live, after));
        }
        let status = self.shared.glance(id, owner).await?;
        let store = Arc::clone(&self.shared.store);
        Ok(EventStream::stored(store, id.to_owned(), is_final(status), after))
    }

    /// A part of the history.
    pub(crate) async fn list(&self, filter: ExecutionFilter) -> Result<Page, Problem> {
        self.shared.store.list(filter).await.map_err(|error| match error {
            StoreError::InvalidCursor => {
                Problem::new(Code::InvalidField, format!("cursor: {error}"))
            }
            error => store_failed(&error),
        })
    }

    /// Waits until there is capacity for work that uses this much memory and is no execution.
    pub(crate) async fn admit(
        &self,
        owner: Option<String>,
        memory: ByteSize,
    ) -> Result<Admission, Problem> {
        admission::wait(&self.shared, owner, memory).await
    }

    /// Lets a client send the archive of a workspace, if there is room for it.
    pub(crate) fn begin_import(&self, client: &Identity) -> Result<Transfer, Problem> {
        self.shared.imports.begin(client.key.clone())
    }

    /// Lets a client fetch the archive of a workspace, if it does not fetch too many already.
    pub(crate) fn begin_export(&self, client: &Identity) -> Result<Transfer, Problem> {
        self.shared.exports.begin(client.key.clone())
    }

    /// Takes up again what an earlier run of the server left.
    pub(crate) async fn recover(&self) -> Result<(), StoreError> {
        recover::recover(&self.shared).await
    }

    /// Measures what waits and runs.
    pub(crate) async fn measure(&self) {
        let Shared { queue, metrics, budget, hub, .. } = &*self.shared;
        metrics.queue(queue.depth().await, queue.oldest_age().await.unwrap_or_default());
        metrics.queue_bytes(hub.waiting_bytes());
        metrics.running(budget.running());
    }

    /// Takes nothing more, lets what runs go on until the deadline, and leaves the rest to the next
    /// start.
    pub(crate) async fn shut_down(&self, deadline: Duration) {
        let shared = &self.shared;
        shared.hub.close();
        shared.queue.close();
        shared.waiters.close();
        let dispatcher = lock(&self.dispatcher).take();
        if let Some(dispatcher) = dispatcher {
            // It only ends badly by a panic, which was printed when it happened.
            let _ = dispatcher.await;
        }
        if !shared.nothing_in_hand(deadline).await {
            for live in shared.hub.all() {
                live.cancel.cancel();
            }
            if !shared.nothing_in_hand(STOP_TIMEOUT).await {
                tracing::error!("some executions did not end; the next start will see to them");
            }
        }
        for live in shared.hub.all() {
            // Its client is about to be told its id.
            if let Err(error) = worker::store_unstored(shared, &live).await {
                drop(store_failed(&error));
            }
        }
        shared.hub.put_all_back();
    }

    /// An execution that is not over, if it is this client's.
    fn live(&self, id: &str, owner: &Identity) -> Result<Option<Arc<Live>>, Problem> {
        match self.shared.hub.get(id) {
            Some(live) if !may_see(owner, live.owner.as_deref()) => Err(no_such(id)),
            found => Ok(found),
        }
    }
}

impl Drop for Work {
    /// Whoever did not shut down in order at least leaves no program running.
    fn drop(&mut self) {
        self.keeper.abort();
        self.shared.queue.close();
        for live in self.shared.hub.all() {
            live.cancel.cancel();
        }
    }
}
