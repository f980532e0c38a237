use std::sync::{Arc, Mutex};
use std::time::Duration;

use sandbox::{ByteSize, Status, with_causes};
use sandbox_store::{ExecutionFilter, Page, Queue, Store, StoreError};
use serde_json::Value;
use tokio::task::JoinHandle;

use crate::admission::Admission;
use crate::bus::live_events;
use crate::context::{Context, SchedulerLimits};
use crate::error::SchedulerError;
use crate::event_stream::EventStream;
use crate::execution::Execution;
use crate::identity::Identity;
use crate::lock::lock;
use crate::observer::Observer;
use crate::recovery::{self, RequestDecoder};
use crate::report::{StoredReport, is_final};
use crate::submission::{self, AnswerWith, Submission, Ticket};
use crate::worker;

/// How long `cancel` waits for the end of the execution. Programs are killed at once, so only a very busy machine
/// takes longer.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a stop waits for executions that it cancelled.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);

/// Schedules all executions of a server.
pub struct Scheduler {
    context: Arc<Context>,
    /// `None` once the stop has waited for it.
    dispatcher: Mutex<Option<JoinHandle<()>>>,
    /// Stores long-running executions. Aborted on drop.
    recorder: JoinHandle<()>,
}

/// The state of the queue and the workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueStatus {
    /// The number of waiting executions.
    pub depth: usize,
    /// How long the oldest of them has been waiting.
    pub oldest_age: Duration,
    /// The bytes that waiting requests keep in memory.
    pub waiting_bytes: u64,
    /// The number of running executions.
    pub running: usize,
}

impl Scheduler {
    /// Starts a scheduler that is a worker of this queue. Needs a running Tokio.
    pub fn start(
        limits: SchedulerLimits,
        queue: Arc<dyn Queue>,
        store: Arc<dyn Store>,
        observer: Arc<dyn Observer>,
    ) -> Self {
        let context = Arc::new(Context::new(limits, queue, store, observer));
        let dispatcher = tokio::spawn(worker::dispatch(Arc::clone(&context)));
        let recorder = tokio::spawn(worker::store_long_running(Arc::clone(&context)));
        Self { context, dispatcher: Mutex::new(Some(dispatcher)), recorder }
    }

    /// Accepts a request, or says why not. An accepted request is executed even if its client disconnects.
    pub async fn submit(
        &self,
        submission: Submission,
        owner: Option<String>,
        answer: AnswerWith,
    ) -> Result<Ticket, SchedulerError> {
        submission::submit(&self.context, submission, owner, answer).await
    }

    /// Makes sure that an execution is stored before its client is told its id.
    pub async fn ensure_stored(&self, id: &str) -> Result<(), SchedulerError> {
        let registry = &self.context.registry;
        let Some(execution) = registry.get(id) else {
            // It was removed from the registry, so it is in the store, unless that failed.
            return if self.context.store.is_degraded() { self.find(id).await } else { Ok(()) };
        };
        self.context.store_unstored(&execution).await?;
        execution.stored().await;
        // Another task may have failed to store it, or the store may have refused it.
        if execution.is_unstored() {
            Err(SchedulerError::NotStored)
        } else if registry.get(id).is_some() {
            Ok(())
        } else {
            self.find(id).await
        }
    }

    /// Makes sure that the store has an execution.
    async fn find(&self, id: &str) -> Result<(), SchedulerError> {
        self.context.store.summary(id).await?.map(drop).ok_or(SchedulerError::NotStored)
    }

    /// Returns the current or final report.
    pub async fn report(
        &self,
        id: &str,
        client: &Identity,
    ) -> Result<StoredReport, SchedulerError> {
        match self.unfinished(id, client)? {
            Some(execution) => Ok(self.context.report(&execution).await),
            None => Ok(self.context.stored(id, client).await?.into()),
        }
    }

    /// Returns whether an execution has finished, without loading its report.
    pub async fn is_finished(&self, id: &str, client: &Identity) -> Result<bool, SchedulerError> {
        match self.unfinished(id, client)? {
            Some(execution) => Ok(execution.outcome().is_some()),
            None => self.context.stored_status(id, client).await.map(is_final),
        }
    }

    /// Waits for the final report. Returns the current one when the timeout expires.
    pub async fn wait(
        &self,
        id: &str,
        client: &Identity,
        timeout: Duration,
    ) -> Result<StoredReport, SchedulerError> {
        match self.unfinished(id, client)? {
            Some(execution) => Ok(self.wait_for(&execution, timeout).await),
            None => Ok(self.context.stored(id, client).await?.into()),
        }
    }

    /// Waits for the final report of a ticket, like [`Scheduler::wait`].
    pub async fn wait_for_ticket(
        &self,
        ticket: &Ticket,
        client: &Identity,
        timeout: Duration,
    ) -> Result<StoredReport, SchedulerError> {
        match &ticket.execution {
            Some(execution) => Ok(self.wait_for(execution, timeout).await),
            None => self.wait(&ticket.id, client, timeout).await,
        }
    }

    async fn wait_for(&self, execution: &Execution, timeout: Duration) -> StoredReport {
        // Whether it ended or the time did: the report has the status.
        let _ = tokio::time::timeout(timeout, execution.ended()).await;
        self.context.report(execution).await
    }

    /// Cancels an execution and returns its report. No effect once it has finished.
    pub async fn cancel(
        &self,
        id: &str,
        client: &Identity,
    ) -> Result<StoredReport, SchedulerError> {
        let Some(execution) = self.unfinished(id, client)? else {
            return Ok(self.context.stored(id, client).await?.into());
        };
        self.context.audit(client.key.clone(), "cancel", id, Value::Null).await;
        self.context.bus.cancel(id).await;
        if self.context.queue.remove(id).await {
            let context = Arc::clone(&self.context);
            let execution = Arc::clone(&execution);
            // In a task of its own: the execution must end even if the client disconnects.
            tokio::spawn(async move {
                let (status, reason) = (Status::Cancelled, "cancelled");
                worker::end_without_running(&context, &execution, status, reason).await;
            });
        }
        self.wait(id, client, CANCEL_TIMEOUT).await
    }

    /// Streams the events after a sequence number, past and future.
    pub async fn events(
        &self,
        id: &str,
        client: &Identity,
        after: u64,
    ) -> Result<EventStream, SchedulerError> {
        let mut status = match self.unfinished(id, client)? {
            Some(_) => Status::Running,
            None => self.context.stored_status(id, client).await?,
        };
        if !is_final(status) {
            if let Some(events) = self.context.bus.subscribe(id, after).await {
                return Ok(EventStream::live(events));
            }
            // It has just finished, or no process runs it.
            status = self.context.stored_status(id, client).await?;
        }
        let store = Arc::clone(&self.context.store);
        Ok(EventStream::stored(store, id.to_owned(), is_final(status), after))
    }

    /// Streams all events of a ticket, like [`Scheduler::events`].
    pub async fn events_of_ticket(
        &self,
        ticket: &Ticket,
        client: &Identity,
    ) -> Result<EventStream, SchedulerError> {
        match &ticket.execution {
            Some(execution) => {
                let (execution, store) = (Arc::clone(execution), Arc::clone(&self.context.store));
                Ok(EventStream::live(live_events(execution, store, 0)))
            }
            None => self.events(&ticket.id, client, 0).await,
        }
    }

    /// Lists stored executions.
    pub async fn list(&self, filter: ExecutionFilter) -> Result<Page, SchedulerError> {
        Ok(self.context.store.list(filter).await?)
    }

    /// Waits until there is capacity for other work with this much memory, such as building an environment.
    pub async fn admit(
        &self,
        owner: Option<String>,
        memory: ByteSize,
    ) -> Result<Admission, SchedulerError> {
        self.context.admissions.wait(owner, memory).await
    }

    /// Recovers the executions that an earlier run of the server did not finish.
    pub async fn recover(&self, decoder: Arc<dyn RequestDecoder>) -> Result<(), StoreError> {
        recovery::recover(&self.context, &decoder).await
    }

    /// Returns the state of the queue and the workers.
    pub async fn status(&self) -> QueueStatus {
        let Context { queue, budget, registry, .. } = &*self.context;
        QueueStatus {
            depth: queue.depth().await,
            oldest_age: queue.oldest_age().await.unwrap_or_default(),
            waiting_bytes: registry.waiting_bytes(),
            running: budget.running(),
        }
    }

    /// Accepts nothing more, lets executions run until the deadline, and leaves the rest to the next start.
    pub async fn shut_down(&self, deadline: Duration) {
        let context = &self.context;
        context.registry.close();
        context.queue.close();
        context.admissions.close();
        let dispatcher = lock(&self.dispatcher).take();
        if let Some(dispatcher) = dispatcher {
            // It fails only by a panic, which was logged.
            let _ = dispatcher.await;
        }
        if !context.all_stored(deadline).await {
            for execution in context.registry.all() {
                execution.cancel.cancel();
            }
            if !context.all_stored(STOP_TIMEOUT).await {
                tracing::error!("some executions did not end; the next start recovers them");
            }
        }
        for execution in context.registry.all() {
            // Its client is about to be told its id.
            if let Err(error) = context.store_unstored(&execution).await {
                tracing::error!(error = with_causes(&error), "store an execution at the shutdown");
            }
        }
        context.registry.requeue_all();
    }

    /// An unfinished execution, if this client may see it.
    fn unfinished(
        &self,
        id: &str,
        client: &Identity,
    ) -> Result<Option<Arc<Execution>>, SchedulerError> {
        match self.context.registry.get(id) {
            Some(execution) if !client.may_see(execution.owner.as_deref()) => {
                Err(SchedulerError::NotFound(id.to_owned()))
            }
            found => Ok(found),
        }
    }
}

impl Drop for Scheduler {
    /// Leaves no program running without a shutdown.
    fn drop(&mut self) {
        self.recorder.abort();
        self.context.queue.close();
        for execution in self.context.registry.all() {
            execution.cancel.cancel();
        }
    }
}

#[cfg(test)]
mod tests;
