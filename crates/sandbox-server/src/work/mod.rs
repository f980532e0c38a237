//! What the HTTP API does with executions: it checks requests of clients ([`requests`], [`convert`]) and passes them to
//! the scheduler, whose errors become problems.

mod convert;
mod requests;
mod stdin;
mod template;
mod toolchains_seen;
mod transfers;
pub(crate) mod workspace;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use sandbox_api::{Code, ExecuteRequest, Problem};
use sandbox_scheduler::{Identity, Sandboxes, Scheduler};
use sandbox_store::{ExecutionFilter, Idempotency, Page, StoreError, StoredEvent};

use crate::config::Config;
use crate::metrics::Metrics;
use crate::problems::of_scheduler;
use requests::Requests;
pub(crate) use sandbox_scheduler::{AnswerWith, StoredReport, Ticket};
pub(crate) use stdin::StdinSender;
pub(crate) use transfers::Transfer;
use transfers::Transfers;

/// The executions of this server, as its clients use them.
pub(crate) struct Work {
    scheduler: Arc<Scheduler>,
    requests: Arc<Requests>,
    imports: Arc<Transfers>,
    exports: Arc<Transfers>,
    metrics: Arc<Metrics>,
}

/// The events of an execution.
pub(crate) struct EventStream(sandbox_scheduler::EventStream);

impl Work {
    pub(crate) fn new(
        scheduler: Arc<Scheduler>,
        sandboxes: Arc<Sandboxes>,
        config: &Config,
        metrics: Arc<Metrics>,
    ) -> Self {
        let requests = Arc::new(Requests::new(config, sandboxes));
        let (imports, exports) = (Transfers::new("imports"), Transfers::new("exports"));
        Self { scheduler, requests, imports, exports, metrics }
    }

    /// Accepts a request, or says why not.
    pub(crate) async fn accept(
        &self,
        request: ExecuteRequest,
        client: &Identity,
        idempotency: Option<Idempotency>,
        answer: AnswerWith,
    ) -> Result<Ticket, Problem> {
        let streams_stdin = request.stdin_stream;
        let submission = self.requests.check(request, client, idempotency).await?;
        let accepted = self.scheduler.submit(submission, client.key.clone(), answer).await;
        let ticket = accepted.map_err(|error| of_scheduler(&error))?;
        if streams_stdin {
            self.requests.accept_stdin(&ticket.id);
            self.close_stdin_at_end(ticket.clone(), client.clone());
        }
        Ok(ticket)
    }

    /// The standard input of an execution that this client requested with `stdin_stream`. `None` if it has finished.
    pub(crate) async fn take_stdin(
        &self,
        id: &str,
        client: &Identity,
    ) -> Result<Option<StdinSender>, Problem> {
        if let Some(sender) = self.requests.take_stdin(id, client.key.as_deref()) {
            return Ok(Some(sender));
        }
        if self.is_over(id, client).await? {
            return Ok(None);
        }
        let reason = "it was requested without 'stdin_stream', or another request sends it";
        Err(Problem::new(Code::NotFound, format!("{id} takes no standard input: {reason}")))
    }

    fn close_stdin_at_end(&self, ticket: Ticket, client: Identity) {
        let (scheduler, requests) = (Arc::clone(&self.scheduler), Arc::clone(&self.requests));
        tokio::spawn(async move {
            // Whether there is a report or an error: nobody reads the input any more.
            let _ = scheduler.wait_for_ticket(&ticket, &client, Duration::MAX).await;
            requests.close_stdin(&ticket.id);
        });
    }

    /// Makes sure that an execution is stored before its client is told its id.
    pub(crate) async fn promise(&self, id: &str) -> Result<(), Problem> {
        self.scheduler.ensure_stored(id).await.map_err(|error| of_scheduler(&error))
    }

    /// Returns the current or final report.
    pub(crate) async fn report(
        &self,
        id: &str,
        client: &Identity,
    ) -> Result<StoredReport, Problem> {
        self.scheduler.report(id, client).await.map_err(|error| of_scheduler(&error))
    }

    /// Returns whether an execution has finished.
    pub(crate) async fn is_over(&self, id: &str, client: &Identity) -> Result<bool, Problem> {
        self.scheduler.is_finished(id, client).await.map_err(|error| of_scheduler(&error))
    }

    /// Waits for the final report. Returns the current one when the timeout expires.
    pub(crate) async fn wait(
        &self,
        id: &str,
        client: &Identity,
        timeout: Duration,
    ) -> Result<StoredReport, Problem> {
        self.scheduler.wait(id, client, timeout).await.map_err(|error| of_scheduler(&error))
    }

    /// Waits for the final report of a ticket, like [`Work::wait`].
    pub(crate) async fn wait_for_ticket(
        &self,
        ticket: &Ticket,
        client: &Identity,
        timeout: Duration,
    ) -> Result<StoredReport, Problem> {
        let report = self.scheduler.wait_for_ticket(ticket, client, timeout).await;
        report.map_err(|error| of_scheduler(&error))
    }

    /// Cancels an execution. No effect once it has finished.
    pub(crate) async fn cancel(
        &self,
        id: &str,
        client: &Identity,
    ) -> Result<StoredReport, Problem> {
        self.scheduler.cancel(id, client).await.map_err(|error| of_scheduler(&error))
    }

    /// Streams the events after a sequence number, past and future.
    pub(crate) async fn events(
        &self,
        id: &str,
        client: &Identity,
        after: u64,
    ) -> Result<EventStream, Problem> {
        let events = self.scheduler.events(id, client, after).await;
        events.map(EventStream).map_err(|error| of_scheduler(&error))
    }

    /// Streams all events of a ticket.
    pub(crate) async fn events_of_ticket(
        &self,
        ticket: &Ticket,
        client: &Identity,
    ) -> Result<EventStream, Problem> {
        let events = self.scheduler.events_of_ticket(ticket, client).await;
        events.map(EventStream).map_err(|error| of_scheduler(&error))
    }

    /// Lists executions.
    pub(crate) async fn list(&self, filter: ExecutionFilter) -> Result<Page, Problem> {
        self.scheduler.list(filter).await.map_err(|error| of_scheduler(&error))
    }

    /// Admits the archive of a workspace, within the client's quota.
    pub(crate) fn begin_import(&self, client: &Identity) -> Result<Transfer, Problem> {
        self.imports.begin(client.key.clone())
    }

    /// Lets a client fetch the archive of a workspace, within its quota.
    pub(crate) fn begin_export(&self, client: &Identity) -> Result<Transfer, Problem> {
        self.exports.begin(client.key.clone())
    }

    /// Recovers the executions that an earlier run of the server did not finish.
    pub(crate) async fn recover(&self) -> Result<(), StoreError> {
        self.scheduler.recover(Arc::<Requests>::clone(&self.requests)).await
    }

    /// Updates the metrics of the queue and the workers.
    pub(crate) async fn measure(&self) {
        let status = self.scheduler.status().await;
        self.metrics.queue(status.depth, status.oldest_age);
        self.metrics.queue_bytes(status.waiting_bytes);
        self.metrics.running(status.running);
    }

    /// Whether no execution is queued or running.
    pub(crate) async fn is_idle(&self) -> bool {
        let status = self.scheduler.status().await;
        status.depth == 0 && status.running == 0
    }

    /// Accepts nothing more, lets executions run until the deadline, and leaves the rest to the next start.
    pub(crate) async fn shut_down(&self, deadline: Duration) {
        self.scheduler.shut_down(deadline).await;
    }
}

impl EventStream {
    /// Returns the next event; none after the last. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Option<Result<StoredEvent, Problem>> {
        let event = self.0.next().await?;
        Some(event.map_err(|error| of_scheduler(&error)))
    }
}
